"""A Code in a programme: where, how strong, and what a scan finds of it afterwards."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import pytest
import soundfile
from support.studio.fake_ffmpeg import install_fake_ffmpeg
from support.studio.programmes import FRAME, OTHER_FRAME, RATE_HZ, make_programme, write_wav

from soundmark.studio.mastering.certificate import describe_measurement, digest_file
from soundmark.studio.mastering.codecs import Codec, CodecUnavailable, parse_codec, try_codecs
from soundmark.studio.mastering.frame_tones import make_frame_tones
from soundmark.studio.mastering.mixing import Mixed, mix
from soundmark.studio.mastering.placing import NotPlaced, find_best_place, list_places, predict_at
from soundmark.studio.mastering.programme import WouldClip, open_programme
from soundmark.studio.mastering.repetitions import choose_channels
from soundmark.studio.mastering.scanning import scan
from soundmark.wire.decode_certificate import Measurement
from soundmark.wire.private.audio import Protocol


def mix_at(
    source: Path, target: Path, *starts: int, frame: str = FRAME, protocol: Protocol = 4, **options: Any
) -> Mixed:
    tones = make_frame_tones(frame, protocol)
    with open_programme(source) as programme:
        channels = choose_channels(programme.channel_count, programme.speakers)
        places = [predict_at(programme, channels, tones, start) for start in starts]
        return mix(programme, tones, places, target, **{"level_db": -12.0, **options})


def scan_file(path: Path) -> list[tuple[float, str, int, bool]]:
    with open_programme(path) as programme:
        return [(round(each.at_s, 1), each.frame, each.protocol, each.is_heard) for each in scan(programme)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A programme of eight seconds in stereo."""
    return write_wav(tmp_path / "programme.wav", make_programme(8.0))


@pytest.fixture
def ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for ffmpeg is found first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(install_fake_ffmpeg(folder)))


@pytest.mark.parametrize("protocol", get_args(Protocol))
@pytest.mark.parametrize("rate", [RATE_HZ, 44_100])
def test_a_scan_finds_what_was_mixed(tmp_path: Path, protocol: Protocol, rate: int) -> None:
    source = write_wav(tmp_path / "programme.wav", make_programme(10.0, rate=rate), rate=rate)
    mixed = mix_at(source, tmp_path / "mixed.wav", rate, 6 * rate, protocol=protocol)
    assert [each.is_heard for each in mixed.repetitions] == [True, True]
    assert all(each.margin_db > 6 and each.cutoff_hz is None for each in mixed.repetitions)
    assert [each.level_db for each in mixed.repetitions] == pytest.approx([-12.0, -12.0], abs=1.5)
    assert mixed.after.loudness_lufs is not None
    assert mixed.before.loudness_lufs is not None
    assert 0 < mixed.after.loudness_lufs - mixed.before.loudness_lufs < 0.5
    assert scan_file(tmp_path / "mixed.wav") == [(1.0, FRAME, protocol, True), (6.0, FRAME, protocol, True)]


def test_a_scan_tells_codes_channels_and_lost_repetitions_apart(tmp_path: Path) -> None:
    """All frames begin alike. A repetition that was wiped out by noise is reported, and not heard."""
    source = write_wav(tmp_path / "programme.wav", make_programme(16.0))
    mix_at(source, tmp_path / "one.wav", RATE_HZ, 9 * RATE_HZ)
    mix_at(tmp_path / "one.wav", tmp_path / "two.wav", 5 * RATE_HZ, frame=OTHER_FRAME)
    with open_programme(tmp_path / "two.wav") as programme:
        sound = programme.read(0, programme.sample_count)
    rng = np.random.default_rng(7)
    wiped = slice(9 * RATE_HZ + 16_384, 9 * RATE_HZ + 100_000)
    sound[wiped] += 0.11 * rng.standard_normal(sound[wiped].shape)
    sound[:, 1] = make_programme(16.0)[:, 1]
    write_wav(tmp_path / "wiped.wav", np.clip(sound, -1, 1))
    found = scan_file(tmp_path / "wiped.wav")
    assert found[:2] == [(1.0, FRAME, 4, True), (5.0, OTHER_FRAME, 4, True)]
    assert [each[:2] for each in found[2:]] == [(9.0, FRAME)]


def test_a_scan_finds_a_lost_repetition_a_minute_before_the_code_is_heard(tmp_path: Path) -> None:
    """A scan goes by minutes, and the first one is over when it learns what to look for."""
    source = write_wav(tmp_path / "programme.wav", make_programme(66.0, 1))
    mix_at(source, tmp_path / "mixed.wav", 5 * RATE_HZ, 62 * RATE_HZ)
    with open_programme(tmp_path / "mixed.wav") as programme:
        sound = programme.read(0, programme.sample_count)
    wiped = slice(5 * RATE_HZ + 59_392, 5 * RATE_HZ + 112_640)
    sound[wiped] += 0.3 * np.random.default_rng(7).standard_normal(sound[wiped].shape)
    found = scan_file(write_wav(tmp_path / "wiped.wav", np.clip(sound, -1, 1)))
    assert found == [(5.0, FRAME, 4, False), (62.0, FRAME, 4, True)]


def test_a_scan_takes_no_code_for_another_with_many_of_its_letters(source: Path, tmp_path: Path) -> None:
    """Beside the first, a fifth of the second's tones were the strongest: it was reported as lost."""
    first, second = "XRC1:brd_RMJ63UdnFK7taXFd", "XRC1:brd_zLH3c_LgZY0Q22CF"
    mix_at(source, tmp_path / "one.wav", RATE_HZ, frame=first)
    mix_at(tmp_path / "one.wav", tmp_path / "two.wav", 5 * RATE_HZ, frame=second)
    assert scan_file(tmp_path / "two.wav") == [(1.0, first, 4, True), (5.0, second, 4, True)]


def test_a_scan_hears_a_channel_whose_code_the_others_drown(source: Path, tmp_path: Path) -> None:
    """As each channel that may have a Code, but only there: to hear all of each would take three times as long."""
    mix_at(source, tmp_path / "mixed.wav", 3 * RATE_HZ)
    with open_programme(tmp_path / "mixed.wav") as programme:
        sound = programme.read(0, programme.sample_count)
    sound[:, 1] = np.clip(0.3 * np.random.default_rng(9).standard_normal(len(sound)), -1, 1)
    assert scan_file(write_wav(tmp_path / "drowned.wav", sound)) == [(3.0, FRAME, 4, True)]


def test_a_scan_hears_a_drowned_code_that_resembles_a_known_one(source: Path, tmp_path: Path) -> None:
    """Where it begins, a quarter of the tones of the known one are the strongest."""
    known, drowned = "XRC1:brd_s_KD_iZPm0daD6Cf", "XRC1:brd_y1SGQW4Qop9HxVGo"
    mix_at(source, tmp_path / "known.wav", RATE_HZ, frame=known)
    mix_at(tmp_path / "known.wav", tmp_path / "both.wav", 5 * RATE_HZ, frame=drowned, protocol=5)
    with open_programme(tmp_path / "both.wav") as programme:
        sound = programme.read(0, programme.sample_count)
    sound[4 * RATE_HZ :, 1] = np.clip(0.3 * np.random.default_rng(9).standard_normal(4 * RATE_HZ), -1, 1)
    found = scan_file(write_wav(tmp_path / "drowned.wav", sound))
    assert found == [(1.0, known, 4, True), (5.0, drowned, 5, True)]


@pytest.mark.parametrize(("kind", "subtype"), [("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS")])
def test_a_scan_finds_what_an_encoder_left(source: Path, tmp_path: Path, kind: str, subtype: str) -> None:
    """An MP3 file does not say how late its encoder is, some 0.01 s."""
    mix_at(source, tmp_path / "mixed.wav", RATE_HZ)
    with open_programme(tmp_path / "mixed.wav") as programme:
        sound = programme.read(0, programme.sample_count)
    master = tmp_path / "master"
    options: dict[str, Any] = {"format": kind, "subtype": subtype, "compression_level": 0.0}
    if kind == "MP3":
        options["bitrate_mode"] = "CONSTANT"
    soundfile.write(master, sound, RATE_HZ, **options)
    with open_programme(master) as programme:
        (found,) = scan(programme)
    assert (found.frame, found.is_heard, found.cutoff_hz) == (FRAME, True, None)
    assert found.at_s == pytest.approx(1.0, abs=0.03)


def test_a_master_without_a_code_has_no_repetition(source: Path, tmp_path: Path) -> None:
    assert scan_file(source) == []
    assert scan_file(write_wav(tmp_path / "short.wav", make_programme(0.01))) == []
    assert scan_file(write_wav(tmp_path / "silent.wav", np.zeros((RATE_HZ, 1)))) == []


def test_a_code_goes_where_the_programme_is_quiet(tmp_path: Path) -> None:
    """In each interval, and never beyond its end."""
    sound = make_programme(20.0, level_dbfs=-14.0)
    for quiet_s in (4.0, 16.0):
        sound[round(quiet_s * RATE_HZ) : round((quiet_s + 3) * RATE_HZ)] *= 0.05
    tones = make_frame_tones(FRAME, 4)
    with open_programme(write_wav(tmp_path / "programme.wav", sound)) as programme:
        places = list(list_places(programme, (0, 1), tones, 10.0))
        best = find_best_place(programme, (0, 1), tones, 0.0, 9.0)
        assert find_best_place(programme, (0, 1), tones, 0.0, 2.0) is None
    starts = [each.start / RATE_HZ for each in places]
    # The marker and the first group may lie outside: any receiver knows them before.
    assert 3.3 <= starts[0] <= 4.8
    assert 15.3 <= starts[1] <= 16.8
    assert best is not None
    assert best.start / RATE_HZ == pytest.approx(starts[0], abs=0.03)


def test_the_level_is_the_lowest_with_a_good_margin(tmp_path: Path) -> None:
    """A programme that is louder in the Code's band needs more."""
    hiss = np.random.default_rng(8).standard_normal((6 * RATE_HZ, 1))
    levels = []
    for name, sound in (("dull", make_programme(6.0, 1)), ("bright", 0.1 * hiss)):
        source = write_wav(tmp_path / f"{name}.wav", sound)
        mixed = mix_at(source, tmp_path / f"{name}-mixed.wav", RATE_HZ, level_db=None)
        assert min(each.margin_db for each in mixed.repetitions) >= 6.0
        levels.append(mixed.level_db)
    assert levels[0] < levels[1] < 0


def test_a_code_that_does_not_fit_below_full_scale_is_refused(tmp_path: Path) -> None:
    """Between the samples too; with `auto` the level gives way until nothing is left."""
    loud = np.sign(make_programme(6.0, 1)) * 0.97
    source, target = write_wav(tmp_path / "loud.wav", loud), tmp_path / "mixed.wav"
    with pytest.raises(WouldClip, match="exceed full scale"):
        mix_at(source, target, RATE_HZ, level_db=-6.0)
    assert not target.exists()
    quiet = write_wav(tmp_path / "quiet.wav", np.clip(loud, -0.9, 0.9) * 0.9)
    assert mix_at(quiet, target, RATE_HZ, level_db=None).level_db <= 0


def test_a_programme_of_silence_gets_the_level_of_broadcasters(tmp_path: Path) -> None:
    source = write_wav(tmp_path / "silent.wav", np.zeros((6 * RATE_HZ, 2)))
    mixed = mix_at(source, tmp_path / "mixed.wav", RATE_HZ, level_db=0.0)
    assert (mixed.before.loudness_lufs, mixed.before.peak_dbtp) == (None, None)
    assert mixed.after.peak_dbtp == pytest.approx(-7.5, abs=3.0)
    assert mixed.repetitions[0].is_heard
    assert mixed.repetitions[0].level_db is None, "there is nothing beside it"


def test_a_programme_that_is_too_short_is_refused(source: Path, tmp_path: Path) -> None:
    tones = make_frame_tones(FRAME, 4)
    with open_programme(source) as programme:
        with pytest.raises(NotPlaced, match="shorter than the Code"):
            mix(programme, tones, [], tmp_path / "mixed.wav", level_db=-12.0)
        for start in (-1, 7 * RATE_HZ):
            with pytest.raises(NotPlaced, match="does not fit"):
                predict_at(programme, (0, 1), tones, start)


@pytest.mark.usefixtures("ffmpeg")
def test_codecs_say_what_they_leave_and_what_would_save_it(source: Path, tmp_path: Path) -> None:
    codecs = [Codec("mp3", 32), Codec("mp3", 32, 20_000), Codec("opus", 96)]
    mixed = mix_at(source, tmp_path / "mixed.wav", RATE_HZ, 5 * RATE_HZ, codecs=codecs)
    cut, opened, whole = mixed.codecs
    assert [each.heard_count for each in mixed.codecs] == [0, 2, 2]
    assert all(each.cutoff_hz == pytest.approx(16_000, abs=400) for each in cut.repetitions)
    assert cut.advice == "FFmpeg: -cutoff 20000; LAME: --lowpass 20"
    assert (opened.advice, whole.advice) == (None, None)
    assert (cut.codec.setting, opened.codec.setting) == ("32 kbit/s", "32 kbit/s, -cutoff 20000")
    with open_programme(tmp_path / "mixed.wav") as programme:
        (again,) = try_codecs(programme, scan(programme), [Codec("aac", 128)])
    assert again.heard_count == 2


@pytest.mark.usefixtures("ffmpeg")
def test_a_codec_that_no_level_saves_does_not_raise_the_level(source: Path, tmp_path: Path) -> None:
    alone = mix_at(source, tmp_path / "alone.wav", RATE_HZ, level_db=None)
    mixed = mix_at(source, tmp_path / "mixed.wav", RATE_HZ, level_db=None, codecs=[Codec("mp3", 32)])
    assert mixed.level_db == alone.level_db
    assert mixed.codecs[0].heard_count == 0


@pytest.mark.usefixtures("ffmpeg")
def test_an_encoder_that_fails_is_named(source: Path, tmp_path: Path) -> None:
    with pytest.raises(CodecUnavailable, match="ffmpeg failed: Unknown encoder"):
        mix_at(source, tmp_path / "mixed.wav", RATE_HZ, codecs=[Codec("opus", 13)])


def test_codecs_are_read_as_they_are_written(subtests: pytest.Subtests) -> None:
    assert parse_codec("mp3:192") == Codec("mp3", 192)
    assert parse_codec(" aac:128:20000") == Codec("aac", 128, 20_000)
    for text in ("", "mp3", "flac:1", "mp3:x", "mp3:7", "mp3:641", "mp3:128:999", "mp3:128:20000:1", "mp3:-8", "mp3:²"):
        with subtests.test(text=text), pytest.raises(ValueError, match=r"must be|is not one of"):
            parse_codec(text)


PATHS: Final = {"a\\b\n.wav": "a_b_.wav", "ä.wav": "ä.wav"}


@pytest.mark.parametrize("name", PATHS)
def test_the_certificate_is_what_the_service_signs(tmp_path: Path, name: str) -> None:
    """Its shape is the service's own, whatever the file is called."""
    source = write_wav(tmp_path / "programme.wav", make_programme(8.0))
    mixed = mix_at(source, tmp_path / name, RATE_HZ, 5 * RATE_HZ)
    with open_programme(tmp_path / name) as programme:
        digest = digest_file(programme.path)
        body = describe_measurement(programme, digest, [*mixed.repetitions, mixed.repetitions[0]], [])
    assert Measurement.model_validate(body).file_name == PATHS[name]
    assert [each["at_ms"] for each in body["repetitions"]] == [1000, 5000]
    assert (body["duration_ms"], body["sample_rate"]) == (8000, RATE_HZ)


# Mixes a Code into the end of silence with a floor, scans the result, and prints its peak of memory.
LONG_RUN: Final = """
import resource, sys
from pathlib import Path
import numpy as np, soundfile
from soundmark.studio.mastering.frame_tones import make_frame_tones
from soundmark.studio.mastering.mixing import mix
from soundmark.studio.mastering.placing import predict_at
from soundmark.studio.mastering.programme import open_programme
from soundmark.studio.mastering.scanning import scan
minutes, folder, frame = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
with soundfile.SoundFile(folder / "long.wav", "w", 48_000, 1, "PCM_16") as file:
    for _ in range(minutes):
        file.write(np.random.default_rng(1).normal(0, 1e-3, 60 * 48_000))
tones, start = make_frame_tones(frame, 4), (60 * minutes - 10) * 48_000
with open_programme(folder / "long.wav") as programme:
    mix(programme, tones, [predict_at(programme, (0,), tones, start)], folder / "mixed.wav", level_db=0.0)
with open_programme(folder / "mixed.wav") as programme:
    (found,) = scan(programme)
assert abs(found.at_s - start / 48_000) < 0.01 and found.is_heard
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.timeout(900)  # It listens to six minutes, some ten seconds of processor time.
def test_memory_and_disk_do_not_grow_with_the_programme(tmp_path: Path) -> None:
    """Two minutes more would be 44 MiB, if they were held at once."""
    peaks_kib = []
    for minutes in (2, 4):
        command = [sys.executable, "-c", LONG_RUN, str(minutes), str(tmp_path), FRAME]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=800)
        peaks_kib.append(int(done.stdout))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["long.wav", "mixed.wav"]
    assert peaks_kib[1] - peaks_kib[0] < 16 * 1024
