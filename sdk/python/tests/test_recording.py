import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from soundmark_sdk import hear

from .sound import PROTOCOLS, RATE_HZ, TOKENS, Sound, frame, play, resample

TOKEN = TOKENS[0]
SUBTYPES = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")


def wav(channels: Sound, rate_hz: int = RATE_HZ, subtype: str = "PCM_16", **kind: Any) -> io.BytesIO:
    file = io.BytesIO()
    soundfile.write(file, channels, rate_hz, subtype=subtype, **{"format": "WAV", **kind})
    file.seek(0)
    return file


def heard(file: Any) -> list[str]:
    return [each.token for each in hear(file)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("subtype", SUBTYPES)
def test_every_sample_format_is_heard(subtype: str, protocol: int) -> None:
    assert heard(wav(play(frame(TOKEN), protocol), subtype=subtype)) == [TOKEN]


@pytest.mark.parametrize("kind", [{"format": "WAVEX"}, {"format": "RF64"}, {"endian": "BIG"}], ids=str)
def test_every_kind_of_wav_file_is_heard(kind: dict[str, str]) -> None:
    assert heard(wav(play(frame(TOKEN)), **kind)) == [TOKEN]


@pytest.mark.parametrize("rate_hz", [44_100, 50_000, 96_000, 192_000])
@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_every_rate_is_heard(rate_hz: int, subtype: str) -> None:
    assert heard(wav(resample(play(frame(TOKEN)), rate_hz), rate_hz, subtype)) == [TOKEN]


@pytest.mark.parametrize("channels", [1, 2, 3, 6, 17])
def test_a_frame_in_every_channel_is_reported_once(channels: int) -> None:
    assert heard(wav(np.tile(play(frame(TOKEN))[:, np.newaxis], channels))) == [TOKEN]


@pytest.mark.parametrize("place", range(5))
def test_a_frame_in_one_channel_beside_loud_others_is_heard(place: int) -> None:
    """The mean of the channels has it 40 dB below the music."""
    sound = play(frame(TOKEN)) / 25
    channels = np.random.default_rng(1).normal(0, 0.2, (len(sound), 5))
    channels[:, place] = sound
    assert heard(wav(channels)) == [TOKEN]


def test_a_frame_that_cancels_out_in_the_mean_is_heard() -> None:
    sound = play(frame(TOKEN))
    assert heard(wav(np.stack([sound, -sound], axis=1), subtype="FLOAT")) == [TOKEN]


def test_a_frame_that_only_the_mean_brings_out_is_heard() -> None:
    """Music in opposite phase on two channels, 35 dB above the frame, is gone in their mean."""
    sound = play(frame(TOKEN)) / 25
    music = np.random.default_rng(1).normal(0, 0.15, len(sound))
    assert heard(wav(np.stack([sound + music, sound - music], axis=1), subtype="PCM_24")) == [TOKEN]


def test_different_frames_in_different_channels_are_all_heard() -> None:
    left, right = play(frame(TOKENS[0])), play(frame(TOKENS[1]))
    silence = np.zeros(len(left))
    sides = [np.concatenate([left, silence]), np.concatenate([silence, right])]
    assert sorted(heard(wav(np.stack(sides, axis=1)))) == sorted(TOKENS[:2])


def test_frames_at_any_place_of_a_long_recording_are_heard_once() -> None:
    """It is listened to in pieces of a minute that overlap; no frame may fall between them."""
    sound = np.zeros(150 * RATE_HZ)
    for token, at_s in zip(TOKENS, (58.5, 113.9, 147.0), strict=True):
        played = play(frame(token), 3 if at_s < 140 else 4)
        start = int(at_s * RATE_HZ)
        sound[start : start + len(played)] = played[: len(sound) - start]
    assert heard(wav(sound)) == list(TOKENS)


def test_paths_of_both_kinds_and_open_files_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "frame.wav"
    path.write_bytes(wav(play(frame(TOKEN))).getvalue())
    assert heard(path) == heard(str(path)) == [TOKEN]
    with path.open("rb") as file:
        assert heard(file) == [TOKEN]


def test_floats_beyond_full_scale_and_not_numbers_are_borne() -> None:
    sound = play(frame(TOKEN)) * 40_000
    sound[:3] = [np.nan, np.inf, -np.inf]
    assert heard(wav(sound, subtype="FLOAT")) == [TOKEN]


def test_a_recording_cut_short_is_heard_as_far_as_it_goes() -> None:
    whole = wav(np.concatenate([play(frame(TOKEN)), play(frame(TOKENS[1]))])).getvalue()
    assert heard(io.BytesIO(whole[: len(whole) * 6 // 10])) == [TOKEN]


def test_an_empty_recording_holds_no_frame() -> None:
    assert hear(wav(np.zeros(0))) == []


def header(**changes: int) -> bytes:
    """Return a PCM WAV header that claims what it is told."""
    claims = {"size": 36, "kind": 1, "channels": 1, "rate": 48_000, "bytes": 96_000, "align": 2, "bits": 16, "data": 0}
    claims |= changes
    size, kind, channels, rate, byte_rate, align, bits, data = claims.values()
    form = struct.pack("<4sI4s4sI", b"RIFF", size, b"WAVE", b"fmt ", 16)
    return form + struct.pack("<HHIIHH4sI", kind, channels, rate, byte_rate, align, bits, b"data", data)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"RIFF",
        b"ID3\x03 an MP3 file",
        b"fLaC\x00\x00\x00\x22",
        b"RIFF\xff\xff\xff\xffAVI LIST",
        header(channels=0, align=0),
        header(rate=0),
        header(rate=44_099),
        header(rate=768_001),
        header(rate=2**31),
        header(kind=7, bits=8),
        header(kind=0x55),
    ],
    ids=lambda content: repr(content[:40]),
)
def test_what_is_no_such_recording_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"WAV|sample rate"):
        hear(io.BytesIO(content))


def test_a_header_that_lies_about_its_length_costs_nothing() -> None:
    assert hear(io.BytesIO(header(channels=1024, align=2048, data=2**32 - 1) + bytes(2048))) == []


def test_a_recording_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "frame.flac"
    soundfile.write(path, play(frame(TOKEN)), RATE_HZ, format="FLAC")
    with pytest.raises(ValueError, match="WAV"):
        hear(path)


def test_a_file_that_is_not_there_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        hear(tmp_path / "missing.wav")
