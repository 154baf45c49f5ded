"""`soundmark hear` on recordings of real Codes, and on other input."""

import json
import re
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from soundmark_sdk import Frame, MicrophoneUnavailable
from support.processes.running_apps import served_in_thread
from support.tenancy.tenant import INTENT

from soundmark.cli import Refused
from soundmark.cli import hear as hear_module

from .altering import altering
from .conftest import Service, environ, run


@pytest.fixture
def code(service: Service) -> dict[str, Any]:
    """An issued Code."""
    return service.make_code()


@pytest.fixture
def recording(service: Service, code: dict[str, Any], tmp_path: Path) -> str:
    """A recording of the Code."""
    path = tmp_path / "recording.wav"
    path.write_bytes(service.sound_of(code))
    return str(path)


def test_a_recorded_code_shows_its_verified_intent(service: Service, code: dict[str, Any], recording: str) -> None:
    done = run("hear", recording, "--base-url", service.url)

    heard, verified, *shown = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert heard == f"heard {code['broadcast_frame']}"
    assert verified == f"verified {code['xr_id']}, signed by {code['signed_code']['key_id']}"
    assert json.loads("\n".join(shown)) == INTENT


def test_a_revoked_code_is_refused(service: Service, code: dict[str, Any], recording: str) -> None:
    service.revoke(code)

    done = run("hear", recording, "--base-url", service.url)

    assert "code_unavailable" in done.refusal
    assert "example.org" not in done.out


def test_an_altered_answer_is_refused_and_not_shown(service: Service, recording: str) -> None:
    with served_in_thread(
        altering(service.make_other_app(), "/v1/resolve/", answer=lambda body: body.replace(b"open", b"sell"))
    ) as url:
        done = run("hear", recording, "--base-url", url)

    assert "unverifiable" in done.refusal
    assert "sell" not in done.out


def test_every_code_in_a_recording_must_verify(
    service: Service, code: dict[str, Any], recording: str, tmp_path: Path
) -> None:
    other = service.make_code()
    path = tmp_path / "both.wav"
    first, second = Path(recording).read_bytes(), service.sound_of(other)
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(48_000)
        sound.writeframes(first[44:] + bytes(48_000) + second[44:])

    both = run("hear", str(path), "--base-url", service.url)
    service.revoke(code)
    one = run("hear", str(path), "--base-url", service.url)
    service.revoke(other)
    none = run("hear", str(path), "--base-url", service.url)

    assert (both.status, both.out.count("verified")) == (0, 2)
    assert code["broadcast_frame"] in one.refusal
    assert other["xr_id"] in one.out
    assert re.search(r"[^.]; no verified intent for ", none.refusal)


def test_an_issuers_text_cannot_control_the_terminal(service: Service, tmp_path: Path) -> None:
    """Escape sequences, C1 controls and writing directions from an issuer are only data."""
    title = "\x1b[2J \x9b31m \u202eevil \U000e0041 Grüße 😀"
    intent = {"type": "link", "action": "open", "resource": {"title": title}}
    path = tmp_path / "recording.wav"
    path.write_bytes(service.sound_of(service.make_code(intent=intent)))

    done = run("hear", str(path), "--base-url", service.url)

    assert all(char.isprintable() or char == "\n" for char in done.out)
    assert "Grüße 😀" in done.out
    assert json.loads(done.out[done.out.index("{") :]) == intent


@pytest.mark.parametrize("suffix", ["ogg", "mp3"])
def test_compressed_recordings_are_heard(
    service: Service, code: dict[str, Any], recording: str, tmp_path: Path, suffix: str
) -> None:
    sound, rate = soundfile.read(recording)
    soundfile.write(tmp_path / f"r.{suffix}", sound, rate, **({"compression_level": 0.0} if suffix == "mp3" else {}))

    done = run("hear", str(tmp_path / f"r.{suffix}"), "--base-url", service.url)

    assert (done.status, done.err) == (0, "")
    assert f"verified {code['xr_id']}" in done.out


def test_a_recording_comes_from_standard_input(service: Service, code: dict[str, Any], recording: str) -> None:
    """From a pipe, from a file behind it, and as a device: `ffmpeg … -f wav pipe:1 | soundmark hear -`."""
    content = Path(recording).read_bytes()

    def hear(file: str, **stdin: Any) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "soundmark", "hear", file, "--base-url", service.url]
        return subprocess.run(command, capture_output=True, check=False, env=environ({}), timeout=90, **stdin)

    with Path(recording).open("rb") as file:
        redirected = hear("-", stdin=file)
    piped, as_device, refused = hear("-", input=content), hear("/dev/stdin", input=content), hear("-", input=b"hello")

    for done in (piped, redirected, as_device):
        assert (done.returncode, done.stderr) == (0, b"")
        assert f"verified {code['xr_id']}" in done.stdout.decode()
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-m", "soundmark", "hear", "-", "--base-url", service.url],
        capture_output=True, check=False, env=environ({}), timeout=90,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr) == (1, b"soundmark: standard input is closed\n")
    assert refused.returncode == 1
    assert b"the recording from standard input cannot be heard: That is not a WAV" in refused.stderr


def test_an_explanation_says_how_well_a_code_was_heard(service: Service, code: dict[str, Any], recording: str) -> None:
    done = run("hear", recording, "--explain", "--base-url", service.url)

    explained, _, heard = done.out.partition(f"heard {code['broadcast_frame']}")
    assert (done.status, done.err) == (0, "")
    expected = (
        r"recording       2\.35 s, 48000 Hz, 1 channel\n"
        r"level           peak -6 dBFS, RMS -1[67] dBFS\n"
        r"15 to 19\.5 kHz  -1[45] dBFS in its loudest second; "
        r"then the band below has -\d+ dBFS, the band above -\d+ dBFS\n"
        r"frames          1 heard; clear beginnings: 1, clear ends: 1\n"
        r"- A frame was heard\. Its marker tones are [23]\d dB above the sound between them\.\n"
    )
    assert re.fullmatch(expected, explained), explained
    assert json.loads(heard[heard.index("{") :]) == INTENT


def test_an_explanation_says_why_nothing_was_heard(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (16_000, 2))
    soundfile.write(tmp_path / "r.flac", noise, 8_000)

    done = run("hear", str(tmp_path / "r.flac"), "--explain")

    assert done.refusal == f"no Code was heard in {tmp_path / 'r.flac'}"
    assert done.out.splitlines() == [
        "recording       2.00 s, 8000 Hz, 2 channels",
        done.out.splitlines()[1],
        "15 to 19.5 kHz  nothing in its loudest second; then the band below has nothing, the band above nothing",
        "- The sample rate is 8000 Hz, which holds nothing above 4 kHz; frames are heard at 44000 Hz or more.",
    ]


def test_without_an_explanation_a_refusal_names_the_option(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "r.flac", np.zeros(48_000), 48_000)

    assert run("hear", str(tmp_path / "r.flac")).refusal.endswith("r.flac; run it with --explain to see why")


def test_a_microphone_is_not_explained() -> None:
    assert run("hear", "--microphone", "--explain").status == 2


def test_a_file_that_is_not_a_recording_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("hello")

    assert run("hear", str(tmp_path / "text.wav")).refusal.endswith(
        "That is not a WAV, FLAC, OGG or MP3 file; convert it to one of these first."
    )
    assert run("hear", str(tmp_path / "none.wav")).refusal.endswith(
        "none.wav cannot be heard: No such file or directory"
    )
    file = str(tmp_path / "text.wav")
    assert run("hear", file, "--data-dir", file).refusal == f"{file}/up.json cannot be read: Not a directory"


@pytest.mark.parametrize("url", ["ftp://example.org", "http://example.org"])
def test_a_malformed_address_is_one_line(recording: str, url: str) -> None:
    assert run("hear", recording, "--base-url", url).refusal.startswith(url)


def test_without_a_service_there_is_no_intent(recording: str) -> None:
    done = run("hear", recording, "--base-url", "http://127.0.0.1:9")
    assert done.refusal.endswith("network: Nothing answers at http://127.0.0.1:9 (connection refused).")


def make_up(folder: Path, url: str) -> Path:
    """Write the files that a running `up` leaves."""
    folder.mkdir()
    (folder / "up.json").touch(mode=0o600)
    (folder / "up.json").write_text(json.dumps({"base_url": url}))
    return folder


def test_the_up_in_this_folder_is_the_service(
    service: Service, code: dict[str, Any], recording: str, nowhere: Path
) -> None:
    """Not another service on the usual port, which does not know the Code."""
    make_up(nowhere / ".soundmark", service.url)

    assert code["xr_id"] in run("hear", recording).out


def test_the_environment_and_a_data_dir_name_the_service(service: Service, recording: str, tmp_path: Path) -> None:
    data_dir = ("--data-dir", str(make_up(tmp_path / "data", service.url)))

    assert run("hear", recording, *data_dir).status == 0
    assert run("hear", recording, settings={"BASE_URL": service.url}).status == 0
    assert (
        "http://127.0.0.1:9" in run("hear", recording, *data_dir, settings={"BASE_URL": "http://127.0.0.1:9"}).refusal
    )
    assert "no `soundmark up` is running there" in run("hear", recording, "--data-dir", str(tmp_path)).refusal


def test_a_key_is_taken_as_by_other_commands_and_not_read(service: Service, recording: str, nowhere: Path) -> None:
    missing = ("--key-file", str(nowhere / "missing"))
    assert run("hear", recording, "--base-url", service.url, *missing, settings={"API_KEY": "k" * 20}).status == 0


@pytest.mark.parametrize("arguments", [(), ("some.wav", "--microphone")], ids=["neither", "both"])
def test_a_recording_or_the_microphone(arguments: tuple[str, ...]) -> None:
    assert run("hear", *arguments).status == 2


def test_the_microphone_is_listened_to_until_a_code_is_heard(
    service: Service, code: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def endless(source: str) -> Iterator[Frame]:
        assert source == "a microphone"
        while True:
            yield Frame(code["broadcast_frame"], code["broadcast_token"])

    monkeypatch.setattr(hear_module, "Microphone", lambda: "a microphone")
    monkeypatch.setattr(hear_module, "listen", endless)

    hear_module.hear_command(file=None, microphone=True, base_url=service.url)

    shown = capsys.readouterr().out
    assert shown.count("verified") == 1
    assert code["xr_id"] in shown


def test_without_a_microphone_it_does_not_claim_to_listen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise MicrophoneUnavailable("There is none.")

    monkeypatch.setattr(hear_module, "Microphone", missing)

    with pytest.raises(Refused, match=r"There is none\."):
        hear_module.hear_command(file=None, microphone=True)

    assert "".join(capsys.readouterr()) == ""
