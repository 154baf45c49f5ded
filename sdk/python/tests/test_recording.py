import contextlib
import io
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from soundmark_sdk import hear, recording

from .recordings import write_recording
from .sound import PROTOCOLS, RATE_HZ, TOKENS, Sound, frame, play, resample

TOKEN = TOKENS[0]
SUBTYPES = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")


def make_wav(channels: Sound, rate_hz: int = RATE_HZ, subtype: str = "PCM_16", **kind: Any) -> io.BytesIO:
    file = io.BytesIO()
    soundfile.write(file, channels, rate_hz, subtype=subtype, **{"format": "WAV", **kind})
    file.seek(0)
    return file


def write_file(*recording: Any) -> io.BytesIO:
    return io.BytesIO(write_recording(*recording))


def hear_tokens(file: Any) -> list[str]:
    return [each.token for each in hear(file)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("subtype", SUBTYPES)
def test_every_sample_format_is_heard(subtype: str, protocol: int) -> None:
    assert hear_tokens(make_wav(play(frame(TOKEN), protocol), subtype=subtype)) == [TOKEN]


@pytest.mark.parametrize("kind", [{"format": "WAVEX"}, {"format": "RF64"}, {"endian": "BIG"}], ids=str)
def test_every_kind_of_wav_file_is_heard(kind: dict[str, str]) -> None:
    assert hear_tokens(make_wav(play(frame(TOKEN)), **kind)) == [TOKEN]


@pytest.mark.parametrize("rate_hz", [44_100, 50_000, 96_000, 192_000])
@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_every_rate_is_heard(rate_hz: int, subtype: str) -> None:
    assert hear_tokens(make_wav(resample(play(frame(TOKEN)), rate_hz), rate_hz, subtype)) == [TOKEN]


@pytest.mark.parametrize("channels", [1, 2, 3, 6, 17])
def test_a_frame_in_every_channel_is_reported_once(channels: int) -> None:
    assert hear_tokens(make_wav(np.tile(play(frame(TOKEN))[:, np.newaxis], channels))) == [TOKEN]


@pytest.mark.parametrize("place", range(5))
def test_a_frame_in_one_channel_beside_loud_others_is_heard(place: int) -> None:
    """In the mean of the channels it is 40 dB below the music."""
    sound = play(frame(TOKEN)) / 25
    channels = np.random.default_rng(1).normal(0, 0.2, (len(sound), 5))
    channels[:, place] = sound
    assert hear_tokens(make_wav(channels)) == [TOKEN]


def test_a_frame_that_cancels_out_in_the_mean_is_heard() -> None:
    sound = play(frame(TOKEN))
    assert hear_tokens(make_wav(np.stack([sound, -sound], axis=1), subtype="FLOAT")) == [TOKEN]


def test_a_frame_that_only_the_mean_reveals_is_heard() -> None:
    """Music in opposite phase on two channels, 35 dB above the frame, cancels out in their mean."""
    sound = play(frame(TOKEN)) / 25
    music = np.random.default_rng(1).normal(0, 0.15, len(sound))
    assert hear_tokens(make_wav(np.stack([sound + music, sound - music], axis=1), subtype="PCM_24")) == [TOKEN]


def test_different_frames_in_different_channels_are_all_heard() -> None:
    left, right = play(frame(TOKENS[0])), play(frame(TOKENS[1]))
    silence = np.zeros(len(left))
    sides = [np.concatenate([left, silence]), np.concatenate([silence, right])]
    assert sorted(hear_tokens(make_wav(np.stack(sides, axis=1)))) == sorted(TOKENS[:2])


def test_frames_at_any_place_of_a_long_recording_are_heard_once() -> None:
    """It is heard in overlapping segments of a minute, and no frame may be lost between them."""
    sound = np.zeros(150 * RATE_HZ)
    for token, at_s in zip(TOKENS, (58.5, 113.9, 147.0), strict=True):
        played = play(frame(token), 3 if at_s < 140 else 4)
        start = int(at_s * RATE_HZ)
        sound[start : start + len(played)] = played[: len(sound) - start]
    assert hear_tokens(make_wav(sound)) == list(TOKENS)


def test_a_recording_of_minutes_takes_no_more_memory_than_one_of_two(tmp_path: Path) -> None:
    """Samples are read a minute at a time; whole, eight minutes would take 184 MB."""
    peaks = []
    for minutes in (2, 8):
        path = tmp_path / f"{minutes}.wav"
        path.write_bytes(make_wav(np.zeros(minutes * 60 * RATE_HZ), subtype="PCM_16").getvalue())
        tracemalloc.start()
        try:
            assert hear_tokens(path) == []
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2**20


def test_both_kinds_of_path_and_open_files_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "frame.wav"
    path.write_bytes(make_wav(play(frame(TOKEN))).getvalue())
    assert hear_tokens(path) == hear_tokens(str(path)) == [TOKEN]
    with path.open("rb") as file:
        assert hear_tokens(file) == [TOKEN]


def test_floats_beyond_full_scale_and_nan_are_tolerated() -> None:
    sound = play(frame(TOKEN)) * 40_000
    sound[:3] = [np.nan, np.inf, -np.inf]
    assert hear_tokens(make_wav(sound, subtype="FLOAT")) == [TOKEN]


@pytest.mark.parametrize("other", [np.zeros(48_000), b"RIFF", None])
def test_what_is_no_recording_is_a_clear_type_error(other: Any) -> None:
    with pytest.raises(TypeError, match="a Listener takes samples"):
        hear(other)


def test_single_samples_beyond_all_others_are_clipped() -> None:
    sound = play(frame(TOKEN)) * 100
    sound[::5000] = 3e38
    sound[7::9000] = -1e9
    assert hear_tokens(make_wav(sound, subtype="FLOAT")) == [TOKEN]


def test_a_recording_cut_short_is_heard_as_far_as_it_goes() -> None:
    whole = make_wav(np.concatenate([play(frame(TOKEN)), play(frame(TOKENS[1]))])).getvalue()
    assert hear_tokens(io.BytesIO(whole[: len(whole) * 6 // 10])) == [TOKEN]


def test_an_empty_recording_holds_no_frame() -> None:
    assert hear(make_wav(np.zeros(0))) == []


def make_header(**changes: int) -> bytes:
    """Return a PCM WAV header with these claims, true or not."""
    claims = {"size": 36, "kind": 1, "channels": 1, "rate": 48_000, "bytes": 96_000, "align": 2, "bits": 16, "data": 0}
    claims |= changes
    size, kind, channels, rate, byte_rate, align, bits, data = claims.values()
    form = struct.pack("<4sI4s4sI", b"RIFF", size, b"WAVE", b"fmt ", 16)
    return form + struct.pack("<HHIIHH4sI", kind, channels, rate, byte_rate, align, bits, b"data", data)


@pytest.mark.parametrize(
    "content",
    [
        b"RIFF",
        b"ID3\x03 no tag",
        b"ID3\x04\x00\x00\x00\x00\x00\x02\x00\x00FORM\x00\x00\x00\x00AIFF",
        b"fLaC\x00\x00\x00\x22",
        b"OggS\x00\x02" + bytes(40),
        b"\xff\xfb\xe4\x64 no MP3",
        b"\xff\xf1\x50\x80 AAC has no layer",
        b"FORM\x00\x00\x00\x00AIFF",
        b"\x00\x00\x00\x20ftypM4A ",
        b"RIFF\xff\xff\xff\xffAVI LIST",
        make_header(channels=0, align=0),
        make_header(rate=0),
        make_header(rate=43_999),
        make_header(rate=768_001),
        make_header(rate=2**31),
        make_header(kind=7, bits=8),
        make_header(kind=0x55),
    ],
    ids=lambda content: repr(content[:40]),
)
def test_other_formats_and_encodings_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"WAV|sample rate|is broken|no sound"):
        hear(io.BytesIO(content))


def test_a_header_with_a_false_length_costs_no_memory() -> None:
    tracemalloc.start()
    try:
        assert hear(io.BytesIO(make_header(channels=1024, align=2048, data=2**32 - 1) + bytes(2048))) == []
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


FORMS = [("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")]


@pytest.mark.parametrize(("form", "subtype"), FORMS)
@pytest.mark.parametrize("channels", [1, 2])
def test_compressed_recordings_are_heard(form: str, subtype: str, channels: int) -> None:
    assert hear_tokens(write_file(np.tile(play(frame(TOKEN))[:, np.newaxis], channels), form, subtype)) == [TOKEN]


@pytest.mark.parametrize(("form", "subtype"), [("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("MP3", "MPEG_LAYER_III")])
def test_compressed_recordings_of_another_rate_are_heard(form: str, subtype: str) -> None:
    assert hear_tokens(write_file(resample(play(frame(TOKEN)), 44_100), form, subtype, 44_100)) == [TOKEN]


def test_frames_at_any_place_of_a_long_compressed_recording_are_heard_once() -> None:
    sound = np.zeros(70 * RATE_HZ)
    for token, at_s in zip(TOKENS[:2], (1.0, 58.5), strict=True):
        played = play(frame(token))
        sound[int(at_s * RATE_HZ) :][: len(played)] = played
    assert hear_tokens(write_file(sound, "OGG", "VORBIS")) == list(TOKENS[:2])


def test_an_mp2_file_is_read() -> None:
    """Return MPEG frames of 64 kbit/s at 48 kHz, with one channel and only silent subbands."""
    assert hear_tokens(io.BytesIO(100 * (bytes.fromhex("fffd44c0") + bytes(188)))) == []


def test_an_mp3_file_cut_short_is_heard_as_far_as_it_goes() -> None:
    sound = np.concatenate([play(frame(TOKEN)), play(frame(TOKENS[1]))])
    whole = write_recording(sound, "MP3", "MPEG_LAYER_III")
    assert hear_tokens(io.BytesIO(whole[: len(whole) * 6 // 10])) == [TOKEN]


@pytest.mark.parametrize(("form", "subtype"), FORMS)
def test_a_compressed_recording_with_a_low_rate_is_refused(form: str, subtype: str) -> None:
    with pytest.raises(ValueError, match="sample rate"):
        hear(write_file(np.zeros(48_000), form, subtype, 24_000))


@pytest.mark.parametrize(("form", "subtype"), FORMS)
def test_an_altered_byte_causes_only_a_refusal(form: str, subtype: str) -> None:
    """From a damaged file the frame is heard or not, or the file is refused; no other frame is heard."""
    content = write_recording(play(frame(TOKEN)), form, subtype)
    chance = np.random.default_rng(7)
    outcomes = set()
    for _ in range(12):
        altered = bytearray(content)
        for place in chance.integers(4, len(content), 20):
            altered[place] ^= int(chance.integers(1, 256))
        with contextlib.suppress(ValueError):
            outcomes.update(hear_tokens(io.BytesIO(bytes(altered))))
    assert outcomes <= {TOKEN}


def test_a_recording_longer_than_a_day_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit applies to the decoded sound, because a compressed file of silence is small at any length."""
    monkeypatch.setattr(recording, "DURATION_MAX_S", 61)
    assert hear(write_file(np.zeros(61 * RATE_HZ), "FLAC", "PCM_16")) == []
    with pytest.raises(ValueError, match="longer than 24 hours"):
        hear(write_file(np.zeros(61 * RATE_HZ + 1), "FLAC", "PCM_16"))


def test_a_missing_file_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hear(tmp_path / "missing.wav")
