"""Files of crashed recorders, streams, editors and `cat`: they are heard, or the reason why not is true."""

import contextlib
import io
import os
import re
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import soundfile
from soundmark_sdk import examine, hear, recording
from soundmark_sdk.sound_files.byte_source import ByteSource
from soundmark_sdk.sound_files.decoder_notes import drop_decoder_notes
from soundmark_sdk.sound_files.parts import find_parts

from .found_files import (
    ONE,
    TWO,
    UNKNOWN,
    Made,
    hear_tokens,
    make_flac_files,
    make_joined_files,
    make_mp3_files,
    make_noise,
    make_ogg_files,
    make_wav_files,
    play_quietly,
    write_flac,
    write_mp3,
    write_opus,
    write_vorbis,
)
from .recordings import (
    make_chunk,
    make_form,
    make_ogg,
    make_riff,
    make_sizes,
    make_tag,
    move_positions,
    write_recording,
)
from .sound import TOKENS, Sound


@pytest.mark.parametrize(
    "make",
    [make_wav_files, make_flac_files, make_ogg_files, make_mp3_files, make_joined_files],
    ids=lambda m: m.__name__,
)
def test_a_code_is_heard_in_files_as_they_are_found(make: Callable[[], Made], subtests: pytest.Subtests) -> None:
    for name, content in make().items():
        with subtests.test(name):
            assert hear_tokens(content) == [ONE]


def test_frames_in_every_part_of_a_file_are_heard_even_across_a_joint() -> None:
    """A change of title may divide a Code, and a change of format is no reason to forget the first part."""
    sound = play_quietly(TOKENS[2])
    half = len(sound) // 2
    parts = [play_quietly(ONE), sound[:half]], [sound[half:], play_quietly(TWO)]
    content = b"".join(write_opus(np.concatenate(part)) for part in parts)
    assert hear_tokens(content + write_mp3(play_quietly(ONE))) == [ONE, TOKENS[2], TWO]


OPUS = write_opus(make_noise(3))
HEADERS = OPUS[: OPUS.index(b"OggS", OPUS.index(b"OpusTags"))]
LAST_PAGE = OPUS[OPUS.rindex(b"OggS") :]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "The file is empty."),
        (b"\0" * 500, "That is not a WAV, FLAC, OGG or MP3 file"),
        (b"\0\0\0\x20ftypM4A ", "That is an MP4 file (such as M4A), not a WAV"),
        (make_tag(bytes(9)) + b"\0\0\1\0ftypiso5", "That is an MP4 file (such as M4A), not a WAV"),
        (b"\0\0\0\x14ftypqt  ", "That is a QuickTime file, not a WAV"),
        (b"\0\0\0\x08wide\0\0\1\0mdat", "That is an MP4 or QuickTime file, not a WAV"),
        (b"\0\0\0\x1cftypheic", "That is not a WAV"),
        (b"\x1aE\xdf\xa3" + bytes(40), "That is a WebM or Matroska file, not a WAV"),
        (b"FORM\0\0\0\0AIFC", "That is an AIFF file, not a WAV"),
        (b"FORM\0\0\0\x508SVX", "That is not a WAV"),
        (b"FORMATTED TEXT", "That is not a WAV"),
        (make_riff(make_form(kind=0x55), make_chunk(b"data", bytes(99))), "that cannot be read (MP3)."),
        (make_riff(make_form(kind=0x161), make_chunk(b"data", bytes(99))), "that cannot be read (format 0x0161)."),
        (make_riff(make_form(bits=64), make_chunk(b"data", bytes(99))), "that cannot be read (samples of 64 bits)."),
        (make_riff(make_form(kind=3), make_chunk(b"data", bytes(99))), "that cannot be read (floats of 16 bits)."),
        (make_riff(make_form(channels=2000), make_chunk(b"data", bytes(99))), "that cannot be read (2000 channels)."),
        (make_riff(make_form(channels=0), make_chunk(b"data", bytes(99))), "The WAV file is broken."),
        (make_riff(make_chunk(b"data", bytes(99))), "The WAV file is broken."),
        (b"fLaC\x80\0\0\x22" + bytes(10) + bytes.fromhex("0bb8013000000000") + bytes(16), "(FLAC, 20 bits)."),
        (b"fLaC\x80\0\0\x22" + bytes(34), "The FLAC file is broken."),
        (b"".join(make_ogg([b"Speex   " + bytes(72), b"", b""])), "that cannot be read (Speex)."),
        (write_opus(make_noise(1))[:700], "The OGG file has no sound, or its pages have no times"),
        (move_positions(write_vorbis(make_noise(1)), lambda _: 0), "or its pages have no times, which decoding needs."),
        (2 * (b"\xff\xf1\x50\x80\x01\xff\xfc" + bytes(8)), "That is an AAC file, not a WAV"),
        (make_tag(bytes(9)) + 2 * (b"\xff\xf1\x50\x80\x01\xff\xfc" + bytes(8)), "That is an AAC file, not a WAV"),
        (write_flac(make_noise(1)).partition(b"\xff\xf8")[2].join([b"\xff\xf8", b""]), "That is not a WAV"),
        (b"".join(make_ogg([b"\x80theora" + bytes(9), b"", b""])), "The OGG file has no sound."),
        (b"".join([*make_ogg([b"\x01vorbis", b"1", b"2"])][1:]), "The OGG file begins in the middle of a stream"),
        (HEADERS + LAST_PAGE, "The OGG file has a sound that cannot be decoded: its beginning is missing, or"),
        (write_opus(make_noise(4))[9000:], "The OGG file begins in the middle of a stream"),
        (b"OggS\0\2", "The OGG file is broken."),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_not_read_is_named_truly(content: bytes, words: str) -> None:
    for use in (hear, examine):
        with pytest.raises(ValueError, match=re.escape(words)):
            use(io.BytesIO(content))


def test_a_part_that_cannot_be_read_is_a_reason_only_where_nothing_was_heard() -> None:
    speex = b"".join(make_ogg([b"Speex   " + bytes(72), bytes(40), bytes(70)], serial=5))
    assert hear_tokens(speex + write_vorbis(play_quietly(ONE)) + speex) == [ONE]
    with pytest.raises(ValueError, match="Speex"):
        hear(io.BytesIO(write_vorbis(make_noise(1)) + speex))
    with pytest.raises(ValueError, match="sample rate"):
        hear(io.BytesIO(write_flac(make_noise(1)) + write_recording(make_noise(1), "FLAC", "PCM_16", 22_050)))


@pytest.mark.parametrize(("codec", "write"), [("MP3", write_mp3), ("Opus", write_opus)])
def test_what_an_old_libsndfile_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, codec: str, write: Callable[[Sound], bytes]
) -> None:
    monkeypatch.setattr(soundfile, "available_formats", dict)
    monkeypatch.setattr(soundfile, "available_subtypes", lambda _: {"VORBIS": ""})
    with pytest.raises(ValueError, match=f"The installed libsndfile cannot read {codec}; version 1.1 or later can"):
        hear(io.BytesIO(write(make_noise(1))))
    assert hear_tokens(write_vorbis(play_quietly(ONE))) == [ONE]


class CountedFile(io.BytesIO):
    """A file that counts the bytes that are read of it."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        content = super().read(size)
        self.count += len(content)
        return content


@pytest.mark.parametrize(
    "content",
    [
        b"OggS\0\2" + bytes(20) + b"\xff" + (b"OggS\0\0" + bytes(20) + b"\xff" + b"\xff" * 255) * 500,
        b"".join(make_ogg([b"OpusHead", *[b"x"] * 5000], first_at=9000, granule_step=-1)),
        bytes.fromhex("fffb90c4") * 50_000,
        100 * (bytes.fromhex("fffd44c0") + bytes(188)) + bytes.fromhex("fffd90c4") * 50_000,
        make_riff(make_form(), make_chunk(b"data", b"")) * 2000,
        (b"fLaC\x80\0\0\x22" + bytes(34)) * 2000,
        b"ID3\4" + bytes(6) * 50_000,
        b"\xff" * 500_000,
    ],
    ids=lambda each: repr(each[:6]),
)
def test_a_hostile_file_is_searched_at_a_cost_that_grows_with_its_size(content: bytes) -> None:
    file = CountedFile(content)
    assert len(list(find_parts(ByteSource(file)))) <= 2000
    assert file.count <= 50 * len(content)


class Pipe(io.RawIOBase):
    """A file without positions, which counts what is read."""

    def __init__(self, content: bytes, *, endless: bytes = b"") -> None:
        super().__init__()
        self.content, self.endless, self.count = io.BytesIO(content), endless, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.content.read(len(buffer)) or (self.endless * len(buffer))[: len(buffer)]
        buffer[: len(block)] = block
        self.count += len(block)
        return len(block)


@pytest.mark.parametrize("make", [write_flac, write_vorbis, write_mp3], ids=lambda make: make.__name__)
def test_a_recording_is_heard_from_a_pipe(make: Callable[[Sound], bytes]) -> None:
    read, write = os.pipe()
    content = make(play_quietly(ONE))
    with os.fdopen(write, "wb") as sender, os.fdopen(read, "rb") as receiver:
        sending = threading.Thread(target=lambda: (sender.write(content), sender.close()))
        sending.start()
        assert [each.token for each in hear(receiver)] == [ONE]
        sending.join()
    assert [each.token for each in examine(io.BufferedReader(Pipe(content))).frames] == [ONE]


def test_an_endless_pipe_is_refused_after_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_PIPE_START_BYTES", 1 << 17)
    monkeypatch.setattr(recording, "_PIPE_BYTES_MAX", 1 << 21)
    zeros = Pipe(b"", endless=b"\0")
    with pytest.raises(ValueError, match="not a WAV"):
        hear(io.BufferedReader(zeros))
    assert zeros.count <= 1 << 18
    stream = Pipe(write_flac(make_noise(1)), endless=b"\0")
    with pytest.raises(ValueError, match="save the recording to a file"):
        hear(io.BufferedReader(stream))
    assert stream.count <= 1 << 22


def test_a_pipe_may_begin_with_a_tag_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_PIPE_START_BYTES", 1 << 17)
    content = make_tag(bytes(300_000)) + write_mp3(play_quietly(ONE))
    assert [each.token for each in hear(io.BufferedReader(Pipe(content)))] == [ONE]
    zeros = Pipe(make_tag(b"", size=300_000), endless=b"\0")
    with pytest.raises(ValueError, match="not a WAV"):
        hear(io.BufferedReader(zeros))
    assert zeros.count <= 1 << 19


def test_the_mp3_decoder_writes_nothing_and_others_keep_what_they_write(capfd: pytest.CaptureFixture[str]) -> None:
    content = bytearray(write_mp3(play_quietly(ONE)))
    for place in np.random.default_rng(7).integers(2000, len(content), 40):
        content[place] ^= 0x55
    with contextlib.suppress(ValueError):
        hear(io.BytesIO(content))
    assert capfd.readouterr().err == ""
    with drop_decoder_notes():
        os.write(2, b"Note: missing 5 bytes in bit reservoir for frame 1\na warning of ours\n")
        os.write(2, b"\n[src/libmpg123/layer3.c:III_i_stereo():1] error: big_values too large!\n")
    assert capfd.readouterr().err == "a warning of ours\n"


def test_a_wav_file_of_more_than_4_gb_has_a_long_header() -> None:
    """The data are zeros that nobody wrote: a file with a hole."""
    with tempfile.TemporaryFile() as file:
        file.write(
            make_riff(make_sizes(5 << 30), make_form(channels=8), make_chunk(b"data", b"", UNKNOWN), magic=b"BW64")
        )
        file.truncate(file.tell() + (5 << 30))
        file.seek(0)
        (part,) = find_parts(ByteSource(file))
    assert part.content is not None
    header = part.content.read(4), part.content.seek(0, os.SEEK_END)
    assert header == (b"RF64", (5 << 30) + 80)
