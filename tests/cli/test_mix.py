"""`soundmark mix` and `soundmark scan`: usage, output, exit statuses, and the certificate that the service signs."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from support.studio.fake_ffmpeg import install_fake_ffmpeg
from support.studio.programmes import FRAME, RATE_HZ, make_programme, write_wav

from .conftest import Tenant, answered, environ, run, run_in


@pytest.fixture
def programme(nowhere: Path) -> Path:
    """A programme of eight seconds."""
    return write_wav(nowhere / "programme.wav", make_programme(8.0))


def test_a_code_is_mixed_certified_and_found_again(programme: Path, tenant: Tenant) -> None:
    """Core signs what was measured of the finished file, and everybody can verify it."""
    (code,) = tenant.make_codes(1)
    mixed = tenant.run(
        *("mix", str(programme), "--code", code["xr_id"], "--at", "1,0:05", "--level", "-12dB", "--out", "mixed.wav"),
        *("--certificate", "mixed.json"),
    )
    assert (mixed.status, mixed.err) == (0, "")
    for text in (
        "0:00:01.0",
        "0:00:05.0",
        "good",
        "-12 dB against the programme",
        "LUFS",
        "dBTP",
        "signed: mixed.json",
    ):
        assert text in mixed.out

    verified = answered(run("certificate", "verify", "mixed.json", "--base-url", tenant.service.url, "--json"))
    assert (verified["xr_id"], verified["file_name"]) == (code["xr_id"], "mixed.wav")
    assert [each["at_ms"] for each in verified["repetitions"]] == [1000, 5000]

    scanned = tenant.run("scan", "mixed.wav", "--json", "--certificate", "scanned.json")
    assert scanned.status == 0
    assert "signed: scanned.json" in scanned.err
    found = json.loads(scanned.out)
    assert [each["frame"] for each in found["repetitions"]] == [code["broadcast_frame"]] * 2
    assert [each["at_s"] for each in found["repetitions"]] == pytest.approx([1.0, 5.0], abs=0.01)
    assert found["file_sha256"] == verified["file_sha256"]
    certificate = json.loads(Path("scanned.json").read_text())
    Path("scanned.json").write_text(json.dumps({**certificate, "xr_id": "xr_" + "A" * 22}))
    altered = run("certificate", "verify", "scanned.json", "--base-url", tenant.service.url)
    assert "signature_invalid" in altered.refusal


def test_json_has_everything_that_the_table_has(programme: Path) -> None:
    done = answered(run("mix", str(programme), "--frame", FRAME, "--level", "-9", "--out", "mixed.wav", "--json"))
    assert (done["file"], done["level_db"], done["codecs"]) == ("mixed.wav", -9.0, [])
    assert done["loudness_lufs"]["after"] > done["loudness_lufs"]["before"]
    assert set(done["true_peak_dbtp"]) == {"before", "after"}
    (repetition,) = done["repetitions"]
    assert (repetition["heard"], repetition["grade"], repetition["protocol"]) == (True, "good", 4)


WRONG_USAGE = (
    (),
    ("--frame", FRAME, "--code", "xr_1"),
    ("--frame", "XRC1:brd_short"),
    ("--frame", FRAME, "--every", "9", "--at", "1"),
    ("--frame", FRAME, "--every", "2"),
    ("--frame", FRAME, "--at", "1,2"),
    ("--frame", FRAME, "--at", "5,1"),
    ("--frame", FRAME, "--at", "soon"),
    ("--frame", FRAME, "--level", "loud"),
    ("--frame", FRAME, "--level", "13dB"),
    ("--frame", FRAME, "--level", "-61dB"),
    ("--frame", FRAME, "--protocol", "6"),
    ("--frame", FRAME, "--codecs", "mp3"),
    ("--frame", FRAME, "--out", "programme.wav"),
)


def test_wrong_usage_is_status_2_and_writes_nothing(programme: Path, nowhere: Path) -> None:
    before = programme.read_bytes()
    for options in WRONG_USAGE:
        out = () if "--out" in options else ("--out", "mixed.wav")
        done = run("mix", str(programme), *options, *out)
        assert (done.status, done.out) == (2, ""), options
    assert run("mix", str(programme), "--frame", FRAME).status == 2
    assert [path.name for path in nowhere.iterdir()] == ["programme.wav"]
    assert programme.read_bytes() == before


def test_what_cannot_be_mixed_is_one_clear_line(programme: Path, nowhere: Path) -> None:
    frame = ("--frame", FRAME, "--out", "mixed.wav")
    assert run("mix", "missing.wav", *frame).refusal == "missing.wav: No such file or directory"
    (nowhere / "text.wav").write_text("no sound, and long enough for a header")
    refusal = run("mix", "text.wav", *frame).refusal
    assert refusal == "text.wav cannot be read: it is no WAV, BW64, RF64, FLAC, OGG or MP3 file"
    soundfile.write(nowhere / "programme.mp3", make_programme(6.0), RATE_HZ)
    assert "mix the Code into the programme before it is encoded" in run("mix", "programme.mp3", *frame).refusal
    intact = programme.read_bytes()
    (nowhere / "stale.wav").write_bytes(intact[:40] + bytes([64, 31, 0, 0]) + intact[44:])
    assert "write the file anew first" in run("mix", "stale.wav", *frame).refusal
    assert "save it to a file first" in run("scan", "/dev/null").refusal
    write_wav(nowhere / "short.wav", make_programme(1.0))
    assert run("mix", "short.wav", *frame).refusal == "short.wav: the programme is shorter than the Code"
    write_wav(nowhere / "loud.wav", np.sign(make_programme(6.0)) * 0.99)
    assert "exceed full scale" in run("mix", "loud.wav", *frame, "--level", "0dB").refusal
    assert "does not fit" in run("mix", str(programme), *frame, "--at", "7").refusal
    assert not (nowhere / "mixed.wav").exists()
    assert "mixed.wav" in run("mix", str(programme), "--frame", FRAME, "--out", "no/mixed.wav").refusal


def test_codecs_need_ffmpeg_and_a_lost_repetition_is_status_1(programme: Path, nowhere: Path) -> None:
    mix = ("mix", str(programme), "--frame", FRAME, "--level", "-12", "--out", "mixed.wav", "--codecs")
    without = run_in({**environ({}), "PATH": str(nowhere)}, *mix, "mp3:192")
    assert without.refusal == "ffmpeg is not installed; install it, or leave --codecs out"
    assert not (nowhere / "mixed.wav").exists()

    (nowhere / "bin").mkdir()
    path = {**environ({}), "PATH": str(install_fake_ffmpeg(nowhere / "bin"))}
    lost = run_in(path, *mix, "mp3:32,opus:96")
    assert lost.status == 1
    for text in ("mp3 32 kbit/s: 0 of 1 heard, cut off at", "LAME: --lowpass 20", "opus 96 kbit/s: 1 of 1 heard"):
        assert text in lost.out
    assert lost.err == "soundmark: mixed.wav is written, but a receiver loses the Code 1 times, codecs included\n"
    scanned = run_in(path, "scan", "mixed.wav", "--codecs", "mp3:32")
    assert scanned.err == "soundmark: 0 of 1 repetitions are weak or lost; codecs lose 1\n"
    assert scanned.status == 1


def test_a_master_without_a_code_or_with_a_weak_one_is_status_1(programme: Path, nowhere: Path) -> None:
    assert run("scan", str(programme)).refusal == f"no Code was heard in {programme}"
    assert json.loads(run("scan", str(programme), "--json").out)["repetitions"] == []
    hiss = 0.05 * np.random.default_rng(3).standard_normal((6 * RATE_HZ, 1))
    write_wav(nowhere / "hiss.wav", hiss)
    run("mix", "hiss.wav", "--frame", FRAME, "--level", "-18", "--out", "weak.wav")
    weak = run("scan", "weak.wav")
    assert weak.status == 1
    assert "weak or lost" in weak.err or "no Code was heard" in weak.err
