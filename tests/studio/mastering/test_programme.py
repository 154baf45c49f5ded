"""Every kind of programme is read, and written with a sound in it; everything else stays as it is, byte for byte."""

import resource
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from support.studio.programmes import RATE_HZ, make_programme, write_broadcast_wav, write_wav

from soundmark.studio.mastering.programme import Insertion, WouldClip, open_programme
from soundmark.studio.mastering.repetitions import choose_channels
from soundmark.studio.mastering.wav_layout import NotReadable

START: Final = 48_000
SOUND: Final = 0.05 * np.sin(np.arange(9_600))
SUBTYPES: Final = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")


def mix(source: Path, target: Path, *, sound: NDArray[np.float64] = SOUND, channels: tuple[int, ...] = (0, 1)) -> None:
    with open_programme(source) as programme:
        programme.write_with([Insertion(START, sound)], channels, target)


def read(path: Path) -> NDArray[np.float64]:
    with open_programme(path) as programme:
        return programme.read(0, programme.sample_count)


@pytest.mark.parametrize("subtype", SUBTYPES)
def test_a_sound_is_added_to_samples_of_every_width(tmp_path: Path, subtype: str) -> None:
    source = write_wav(tmp_path / "programme.wav", make_programme(2.0), subtype)
    mix(source, tmp_path / "mixed.wav")
    before, after = read(source), read(tmp_path / "mixed.wav")
    assert np.allclose(before, soundfile.read(source)[0], atol=1e-7)
    added = after - before
    within = slice(START, START + len(SOUND))
    step = {"PCM_U8": 2 / 256, "PCM_16": 2 / 65536}.get(subtype, 1e-6)
    assert np.abs(added[within] - SOUND[:, None]).max() <= 1.5 * step
    added[within] = 0
    assert not added.any()


@pytest.mark.parametrize("magic", [b"RIFF", b"RF64", b"BW64"])
def test_the_chunks_of_broadcasters_and_every_other_byte_stay(tmp_path: Path, magic: bytes) -> None:
    source = write_broadcast_wav(tmp_path / "programme.wav", make_programme(2.0), magic=magic)
    mix(source, tmp_path / "mixed.wav")
    before, after = source.read_bytes(), (tmp_path / "mixed.wav").read_bytes()
    data_at = before.index(b"data") + 8
    changed = slice(data_at + 4 * START, data_at + 4 * (START + len(SOUND)))
    assert before[changed] != after[changed]
    assert before[: changed.start] + before[changed.stop :] == after[: changed.start] + after[changed.stop :]


@pytest.mark.parametrize("data_size", [0, 0xFFFFFFFF])
def test_a_file_that_was_never_finished_goes_on_until_its_end(tmp_path: Path, data_size: int) -> None:
    source = write_broadcast_wav(tmp_path / "programme.wav", make_programme(2.0), data_size=data_size)
    assert len(read(source)) == 2 * RATE_HZ


def test_flac_keeps_its_samples_its_width_and_its_metadata(tmp_path: Path) -> None:
    """Tags, pictures and what applications wrote stay; a table of places in the old file does not."""
    plain = tmp_path / "plain.flac"
    soundfile.write(plain, make_programme(2.0), RATE_HZ, subtype="PCM_24")
    content = plain.read_bytes()
    end_of_info = 4 + 4 + 34
    blocks = b"".join(
        bytes([kind]) + len(block).to_bytes(3, "big") + block
        for kind, block in ((2, b"riffbext" + b"b" * 99), (3, b"\xff" * 8 + b"\0" * 10), (2, b"SONG" + b"s" * 8))
    )
    source = tmp_path / "programme.flac"
    source.write_bytes(content[:end_of_info] + blocks + content[end_of_info:])

    mix(source, tmp_path / "mixed.flac")

    mixed = (tmp_path / "mixed.flac").read_bytes()
    assert b"riffbext" + b"b" * 99 in mixed
    assert b"SONG" + b"s" * 8 in mixed
    assert bytes([3]) + (18).to_bytes(3, "big") not in mixed[:4096]
    info = soundfile.info(tmp_path / "mixed.flac")
    assert (info.subtype, info.samplerate, info.frames) == ("PCM_24", RATE_HZ, 2 * RATE_HZ)
    added = read(tmp_path / "mixed.flac") - read(source)
    assert np.abs(added[START : START + len(SOUND)] - SOUND[:, None]).max() < 1e-6
    added[START : START + len(SOUND)] = 0
    assert not added.any()


def test_a_code_goes_to_the_front_left_and_right(subtests: pytest.Subtests) -> None:
    for count, speakers, expected in [
        (1, None, (0,)),
        (2, None, (0, 1)),
        (3, None, (0, 1)),
        (6, (0, 1, 2, 3, 4, 5), (0, 1)),
        (4, (2, 3, 0, 1), (2, 3)),
        (2, (4, 5), (0, 1)),
        (16, None, (0, 1)),
    ]:
        with subtests.test(count=count, speakers=speakers):
            assert choose_channels(count, speakers) == expected


def test_other_channels_are_not_touched(tmp_path: Path) -> None:
    source = write_wav(tmp_path / "programme.wav", make_programme(2.0, channel_count=5), "PCM_16")
    mix(source, tmp_path / "mixed.wav")
    added = read(tmp_path / "mixed.wav") - read(source)
    assert added[:, :2].any()
    assert not added[:, 2:].any()


@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_what_would_clip_is_refused_and_leaves_nothing(tmp_path: Path, subtype: str) -> None:
    source = write_wav(tmp_path / "programme.wav", make_programme(2.0), subtype)
    target = tmp_path / "mixed.wav"
    target.write_text("the one before")
    with pytest.raises(WouldClip, match=r"at 1\.\d s, .* exceed full scale by \d\d\.\d dB"):
        mix(source, target, sound=20 * SOUND / 0.05)
    assert target.read_text() == "the one before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mixed.wav", "programme.wav"]


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file may grow beyond 64 KiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", ["wav", "flac"])
def test_a_full_disk_leaves_nothing_under_the_name(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    source = tmp_path / f"programme.{kind}"
    soundfile.write(source, make_programme(2.0), RATE_HZ, subtype="PCM_24")
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match="File too large"):
        mix(source, tmp_path / f"mixed.{kind}")
    assert [path.name for path in tmp_path.iterdir()] == [f"programme.{kind}"]


def make_header(**changes: Any) -> bytes:
    """Return the beginning of a WAV file with some values changed."""
    values = {"tag": 1, "channels": 2, "rate": RATE_HZ, "frame": 4, "bits": 16, **changes}
    layout = struct.pack(
        "<HHIIHH", values["tag"], values["channels"], values["rate"], 0, values["frame"], values["bits"]
    )
    return b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16) + layout + b"data" + struct.pack("<I", 8) + bytes(8)


REFUSED: Final[list[tuple[bytes, str]]] = [
    (b"", "it is empty"),
    (b"RIFF", "cut off"),
    (b"OggS" + bytes(60), "OGG file begins in the middle of a stream"),
    (b"no sound" * 20, "no WAV, BW64, RF64, FLAC, OGG or MP3 file"),
    (bytes(4) + b"ftypM4A " + bytes(60), r"an MP4 file \(such as M4A\)"),
    (b"RIFF\0\0\0\0AVI " + bytes(60), "no WAV, BW64 or RF64 file"),
    (b"RIFF\0\0\0\0WAVE", "contains no samples"),
    (make_header()[:30], "cut off"),
    (make_header()[:-8], "contains no samples"),
    (b"RIFF\0\0\0\0WAVEdata" + bytes(12), "before their format"),
    (make_header(rate=32_000), "32000 samples a second"),
    (make_header(rate=800_000), "800000 samples a second"),
    (make_header(tag=6, frame=2, bits=8), "is not read"),
    (make_header(tag=3, frame=4), "is not read"),
    (make_header(channels=0), "contradicts itself"),
    (make_header(channels=300, frame=600), "300 channels"),
    (b"fLaC" + bytes(60), "FLAC file is broken"),
]


def test_what_is_not_read_is_said_truly(tmp_path: Path, subtests: pytest.Subtests) -> None:
    path = tmp_path / "programme.wav"
    for content, reason in REFUSED:
        with subtests.test(reason=reason):
            path.write_bytes(content)
            with pytest.raises(NotReadable, match=reason), open_programme(path):
                pass


def test_what_has_no_positions_is_not_read(subtests: pytest.Subtests) -> None:
    for path, reason in ((Path("/dev/null"), "a pipe or a device"), (Path("-"), "standard input")):
        with subtests.test(path=path), pytest.raises(NotReadable, match=reason), open_programme(path):
            pass


def write_streamed_flac(path: Path, sound: NDArray[np.float64]) -> bytes:
    """Return a FLAC file as FFmpeg writes it into a pipe: its length is 0."""
    soundfile.write(path, sound, RATE_HZ, format="FLAC", subtype="PCM_16")
    content = path.read_bytes()
    # STREAMINFO begins at byte 8; the 36 bits of the number of samples end at its 18th byte.
    return content[:21] + bytes([content[21] & 0xF0]) + bytes(20) + content[42:]


def test_a_master_is_scanned_as_receivers_hear_it_whatever_its_header_says(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    """Nothing is mixed into such a file: a player might read another place."""
    path, sound = tmp_path / "master", make_programme(1.0)
    whole = write_wav(path, sound, "PCM_16").read_bytes()
    head, data = whole[:36], whole[44:]
    flac = write_streamed_flac(path, sound)
    tag = b"ID3\4\0\0\0\0\0\x09" + bytes(9)

    def chunk(part: bytes, size: int | None = None) -> bytes:
        return b"data" + struct.pack("<I", len(part) if size is None else size) + part

    for name, content, encoding in [
        ("in two chunks", head + chunk(data[:8000]) + chunk(data[8000:]), "WAV"),
        ("empty chunk", head + chunk(b"") + chunk(data), "WAV"),
        ("old size", head + chunk(data, 8000), "WAV"),
        ("odd chunk without padding", head[:12] + b"LIST\5\0\0\0INFOx" + head[12:] + chunk(data), "WAV"),
        ("format after the data", head[:12] + chunk(data) + head[12:], "WAV"),
        ("tag", tag + whole, "WAV"),
        ("wrong block size", whole[:32] + b"\x08\0" + whole[34:], "WAV"),
        ("stream", flac, "FLAC"),
        ("tag and stream", tag + flac, "FLAC"),
    ]:
        with subtests.test(name):
            path.write_bytes(content)
            with open_programme(path) as programme:
                assert (programme.encoding, programme.sample_count) == (encoding, RATE_HZ)
                assert np.allclose(programme.read(0, RATE_HZ), sound, atol=1e-4)
                assert np.allclose(programme.read(30_001, 500), sound[30_001:30_501], atol=1e-4)


def test_joined_files_are_scanned_one_by_one(tmp_path: Path) -> None:
    """The decoder would stop at the end of the first, and the others would seem to have no Code."""
    path = tmp_path / "joined.ogg"
    soundfile.write(path, make_programme(1.0), RATE_HZ, format="OGG", subtype="VORBIS")
    path.write_bytes(2 * path.read_bytes())
    with pytest.raises(NotReadable, match="it has 2 sounds"), open_programme(path):
        pass


@pytest.mark.parametrize(("kind", "subtype"), [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS"), ("OGG", "OPUS")])
def test_an_encoded_master_is_read_from_any_place(tmp_path: Path, kind: str, subtype: str) -> None:
    path = tmp_path / "master"
    soundfile.write(path, make_programme(2.0), RATE_HZ, format=kind, subtype=subtype)
    with open_programme(path) as programme:
        assert programme.encoding == kind
        whole = programme.read(0, programme.sample_count)
        assert len(whole) == pytest.approx(2 * RATE_HZ, abs=2304)
        for start in (60_001, 0, 30_000):
            assert np.allclose(programme.read(start, 5000), whole[start : start + 5000], atol=1e-4)


def test_values_that_are_no_numbers_are_silence(tmp_path: Path) -> None:
    sound = make_programme(1.0)
    sound[5, 0], sound[6, 1] = np.nan, np.inf
    assert np.isfinite(read(write_wav(tmp_path / "programme.wav", sound, "FLOAT"))).all()


def test_a_long_programme_is_read_in_blocks_of_a_bounded_size(tmp_path: Path) -> None:
    """However many channels it has."""
    for channels in (1, 64):
        path = write_wav(
            tmp_path / "programme.wav", np.zeros((60_000 if channels > 1 else 3_000_000, channels)), "PCM_16"
        )
        with open_programme(path) as programme:
            sizes = [block.size for block in programme.iterate()]
            assert max(sizes) <= 1 << 20
            assert sum(sizes) == programme.sample_count * channels


def test_a_programme_of_six_hours_is_read_at_its_end(tmp_path: Path) -> None:
    """Of 6 GB, beyond what 32 bits count. Only its end is on the disk."""
    path, end = tmp_path / "long.wav", np.rint(8_000 * np.sin(np.arange(RATE_HZ)))
    count = 6 * 3600 * RATE_HZ
    write_broadcast_wav(path, np.zeros((0, 3)), magic=b"RF64")
    head = path.read_bytes()
    begin = head.index(b"data") + 8
    sizes = head.index(b"ds64") + 8
    with path.open("r+b") as file:
        file.seek(sizes)
        file.write(struct.pack("<QQQ", begin + 6 * count - 8, 6 * count, count))
        file.truncate(begin)
        file.seek(begin + 6 * (count - RATE_HZ))
        file.write(np.repeat(end.astype("<i2"), 3).tobytes())
    with open_programme(path) as programme:
        assert (programme.sample_count, programme.encoding) == (count, None)
        assert np.allclose(programme.read(count - RATE_HZ, RATE_HZ), end[:, None] / 32768)
        assert not programme.read(count // 2, RATE_HZ).any()
