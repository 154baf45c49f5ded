"""`soundmark mix` and `soundmark scan`: usage, output, exit statuses, and the certificate that the service signs."""

import json
import os
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import soundfile
from support.processes.up_process import until
from support.studio.fake_ffmpeg import install_fake_ffmpeg
from support.studio.programmes import FRAME, RATE_HZ, make_programme, write_wav

from soundmark.cli import Refused
from soundmark.cli.mastering import require_certifiable
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.decode_certificate import REPETITIONS_MAX

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


def test_a_code_that_does_not_resolve_any_more_is_certified_by_its_id(programme: Path, tenant: Tenant) -> None:
    """An archive is scanned long after its Codes have expired."""
    soon = format_timestamp(datetime.now(UTC) + timedelta(seconds=2))
    (expired,) = tenant.make_codes(1, expires_at=soon)
    revoked, silent = tenant.make_codes(2)
    mix = ("--level", "-12", "--out")
    assert run("mix", str(programme), "--frame", expired["broadcast_frame"], "--at", "1", *mix, "one.wav").status == 0
    assert run("mix", "one.wav", "--frame", revoked["broadcast_frame"], "--at", "5", *mix, "both.wav").status == 0
    tenant.service.revoke(revoked)
    until(lambda: tenant.answer(f"/v1/codes/{expired['xr_id']}")["status"] == "expired", 60)

    scan = ("scan", "both.wav", "--certificate", "signed.json")
    assert tenant.run(*scan, "--code", f"xr_{'A' * 22}").refusal.startswith("code_not_found (404)")
    named = ("--code", expired["xr_id"], "--code", revoked["xr_id"])
    assert tenant.run(*scan).refusal.endswith("Name the Code with --code XR_ID")
    assert tenant.run(*scan, *named, "--code", silent["xr_id"]).refusal == (
        f"no certificate: {silent['xr_id']} was not heard"
    )
    assert not list(Path().glob("signed*"))

    taken = Path(f"signed.{revoked['xr_id']}.json")
    taken.mkdir()
    assert tenant.run(*scan, *named).refusal == f"{taken} cannot be written: it is a directory"
    assert list(Path().glob("signed*")) == [taken], "nothing is signed that cannot be saved"
    taken.rmdir()

    assert tenant.run(*scan, *named).status == 0
    for code, at_ms in ((expired, 1000), (revoked, 5000)):
        file = f"signed.{code['xr_id']}.json"
        verified = answered(run("certificate", "verify", file, "--base-url", tenant.service.url, "--json"))
        assert verified["xr_id"] == code["xr_id"]
        assert [each["at_ms"] for each in verified["repetitions"]] == pytest.approx([at_ms], abs=10)


def test_a_code_is_named_for_a_certificate_only(programme: Path) -> None:
    assert run("scan", str(programme), "--code", "xr_1").status == 2


def test_json_has_everything_that_the_table_has(programme: Path) -> None:
    done = answered(run("mix", str(programme), "--frame", FRAME, "--level", "-9", "--out", "mixed.wav", "--json"))
    assert (done["file"], done["level_db"], done["codecs"]) == ("mixed.wav", -9.0, [])
    assert done["loudness_lufs"]["after"] > done["loudness_lufs"]["before"]
    assert set(done["true_peak_dbtp"]) == {"before", "after"}
    (repetition,) = done["repetitions"]
    assert (repetition["heard"], repetition["grade"], repetition["protocol"]) == (True, "good", 4)


def test_a_repetition_is_placed_within_each_period_and_described_in_numbers(nowhere: Path) -> None:
    write_wav(nowhere / "long.wav", make_programme(18.0))
    mixed = ("mix", "long.wav", "--frame", FRAME, "--every", "6", "--level", "-12", "--out", "mixed.wav", "--json")
    repetitions = answered(run(*mixed))["repetitions"]
    assert [int(each["at_s"] // 6) for each in repetitions] == [0, 1, 2]
    assert [each["level_db"] for each in repetitions] == pytest.approx([-12] * 3, abs=0.5)
    assert [each["margin_db"] for each in repetitions] == pytest.approx([28] * 3, abs=3)
    assert [each["cutoff_hz"] for each in repetitions] == [None] * 3
    table = run(*("scan", "mixed.wav")).out
    for each in repetitions:
        assert f"0:00:{each['at_s']:04.1f}" in table


def test_a_file_s_loudspeakers_say_where_the_code_goes(nowhere: Path) -> None:
    """Left, right and the low-frequency channel, which would lose it."""
    sound = np.rint(make_programme(6.0, 3) * 32767).astype("<i2")
    mask = 0b1011
    layout = struct.pack("<HHIIHHHHI", 0xFFFE, 3, RATE_HZ, RATE_HZ * 6, 6, 16, 22, 16, mask)
    layout += struct.pack("<H", 1) + bytes.fromhex("000000001000800000aa00389b71")
    body = b"WAVEfmt " + struct.pack("<I", 40) + layout + b"data" + struct.pack("<I", sound.nbytes) + sound.tobytes()
    (nowhere / "three.wav").write_bytes(b"RIFF" + struct.pack("<I", len(body)) + body)
    assert run("mix", "three.wav", "--frame", FRAME, "--level", "-9", "--out", "mixed.wav").status == 0
    after = np.frombuffer((nowhere / "mixed.wav").read_bytes()[-sound.nbytes :], "<i2").reshape(-1, 3)
    assert [bool(np.any(after[:, place] != sound[:, place])) for place in range(3)] == [True, True, False]


def test_more_repetitions_than_a_certificate_holds_are_refused() -> None:
    require_certifiable(REPETITIONS_MAX)
    with pytest.raises(Refused, match="holds 10,000 repetitions of a Code, and these are 10,001"):
        require_certifiable(REPETITIONS_MAX + 1)


WRONG_USAGE = (
    (),
    ("--frame", FRAME, "--code", "xr_1"),
    ("--frame", "XRC1:brd_short"),
    ("--frame", FRAME, "--every", "9", "--at", "1"),
    ("--frame", FRAME, "--every", "2"),
    ("--frame", FRAME, "--every", "nan"),
    ("--frame", FRAME, "--at", "1,2"),
    ("--frame", FRAME, "--at", "5,1"),
    ("--frame", FRAME, "--at", "soon"),
    ("--frame", FRAME, "--level", "loud"),
    ("--frame", FRAME, "--level", "13dB"),
    ("--frame", FRAME, "--level", "-61dB"),
    ("--frame", FRAME, "--protocol", "6"),
    ("--frame", FRAME, "--codecs", "mp3"),
    ("--frame", FRAME, "--out", "programme.wav"),
    ("--frame", FRAME, "--out", "mixed.wav", "--certificate", "./mixed.wav"),
    ("--frame", FRAME, "--certificate", "programme.wav"),
)


def test_wrong_usage_is_status_2_and_writes_nothing(programme: Path, nowhere: Path) -> None:
    before = programme.read_bytes()
    for options in WRONG_USAGE:
        out = () if "--out" in options else ("--out", "mixed.wav")
        done = run("mix", str(programme), *options, *out)
        assert (done.status, done.out) == (2, ""), options
    assert run("mix", str(programme), "--frame", FRAME).status == 2
    assert run("scan", str(programme), "--certificate", "programme.wav").status == 2
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
    assert "rewrite the file first" in run("mix", "stale.wav", *frame).refusal
    assert "save it to a file first" in run("scan", "/dev/null").refusal
    write_wav(nowhere / "short.wav", make_programme(1.0))
    assert run("mix", "short.wav", *frame).refusal == "short.wav: the programme is shorter than the Code"
    write_wav(nowhere / "loud.wav", np.sign(make_programme(6.0)) * 0.99)
    assert "exceed full scale" in run("mix", "loud.wav", *frame, "--level", "0dB").refusal
    soundfile.write(nowhere / "absurd.wav", make_programme(6.0) * 1e300, RATE_HZ, subtype="DOUBLE")
    assert "lower the programme" in run("mix", "absurd.wav", *frame).refusal
    assert run("scan", "absurd.wav").refusal == "no Code was heard in absurd.wav"
    os.mkfifo(nowhere / "pipe")
    assert run("mix", str(programme), "--frame", FRAME, "--out", "pipe").refusal == (
        "pipe cannot be written: it is not a regular file"
    )
    assert (nowhere / "pipe").is_fifo()
    refusal = run("mix", str(programme), *frame, "--at", "7").refusal
    assert refusal == f"{programme}: a Code of 2.3 s does not fit at 7.0 s"
    assert not (nowhere / "mixed.wav").exists()
    refusal = run("mix", str(programme), "--frame", FRAME, "--out", "no/mixed.wav").refusal
    assert refusal == "no/mixed.wav cannot be written: there is no folder no"


def test_an_earlier_file_is_replaced(programme: Path, nowhere: Path) -> None:
    (nowhere / "mixed.wav").write_bytes(b"yesterday")
    mix = ("mix", str(programme), "--frame", FRAME, "--level", "-12", "--out", "mixed.wav")
    assert run(*mix).status == 0
    assert (nowhere / "mixed.wav").stat().st_size == programme.stat().st_size


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
    assert lost.err == "soundmark: mixed.wav is written, but a receiver loses the Code once, codecs included\n"
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
