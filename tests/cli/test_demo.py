"""`soundmark demo` against a Core on a real socket, and against dishonest services."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from soundmark_sdk import Receiver, hear
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.running_apps import served_in_thread

from soundmark.audio.synthesis import render_wav

from .altering import altering
from .conftest import Done, Service, run

STEPS = (
    "organisation created",
    "project created",
    "Code issued and signed",
    "sound rendered",
    "sound heard",
    "picture drawn",
    "resolved and verified",
)
OTHER_FRAME = "XRC1:brd_0000000000000000"


def run_demo(folder: Path, base_url: Any, *arguments: str, token: Any = OPERATOR_TOKEN) -> Done:
    (folder / "up.json").write_text(json.dumps({"base_url": base_url, "operator_token": token}))
    done = run("demo", "--up-file", str(folder / "up.json"), *arguments)
    assert OPERATOR_TOKEN not in done.out + done.err
    return done


def test_the_main_job_is_shown_with_every_step_and_its_time(service: Service, tmp_path: Path) -> None:
    done = run_demo(tmp_path, service.url)

    assert (done.status, done.err) == (0, "")
    for number, step in enumerate(STEPS, 1):
        assert re.search(rf"^{number}\. {step} +\d+\.\d ms  \S", done.out, re.MULTILINE), step
    assert done.out.endswith("The verified intent equals the issued one.\n")
    assert "https://example.org/tonight" in done.out


def test_the_sound_and_its_picture_lie_beside_the_up_file(service: Service, tmp_path: Path) -> None:
    run_demo(tmp_path, service.url)

    (frame,) = hear(tmp_path / "demo.wav")
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    with Receiver(service.url) as receiver:
        assert receiver.resolve(frame.token).intent.action == "open"


def test_the_sound_goes_to_the_named_file(service: Service, tmp_path: Path) -> None:
    wav = tmp_path / "elsewhere.wav"

    assert run_demo(tmp_path, service.url, "--wav-out", str(wav)).status == 0

    assert (len(hear(wav)), wav.with_suffix(".png").exists()) == (1, True)
    assert not (tmp_path / "demo.wav").exists()


def test_it_can_be_shown_again_and_again_in_one_organisation(service: Service, tmp_path: Path) -> None:
    shown = [run_demo(tmp_path, service.url) for _ in range(2)]
    assert [done.status for done in shown] == [0, 0]
    (made,) = re.findall(r"1\. organisation created .* (org_\S+)\n2\. project created ", shown[0].out)
    assert re.findall(r"1\. organisation found .* (org_\S+)\n2\. project found ", shown[1].out) == [made]
    (organization,) = service.client.get("/v1/organizations").json()["data"]
    assert organization["id"] == made


def test_it_makes_another_organisation_if_the_last_one_can_issue_nothing(service: Service, tmp_path: Path) -> None:
    run_demo(tmp_path, service.url)
    (organization,) = service.client.get("/v1/organizations").json()["data"]
    service.run_sql("UPDATE plans SET monthly_code_quota = 1 WHERE id = 'plan_codes_starter'")
    assert organization["name"] == "Soundmark demo"
    assert "1. organisation created" in run_demo(tmp_path, service.url).out


def spoken(_: bytes) -> bytes:
    return render_wav(OTHER_FRAME, 4)


@pytest.mark.parametrize(
    ("path", "lie", "refusal"),
    [
        ("/audio", {"answer": spoken}, "the heard frame is not the broadcast frame"),
        ("/audio", {"answer": lambda _: b"RIFF no sound"}, "the rendered sound cannot be heard"),
        ("/v1/resolve/", {"answer": lambda body: body.replace(b"tonight", b"anything")}, "unverifiable"),
        ("/v1/resolve/", {"answer": lambda _: b"{}"}, "unverifiable"),
        ("/v1/codes", {"question": lambda body: body.replace(b"tonight", b"another")}, "not the one that was issued"),
        ("/v1/organizations", {"answer": lambda _: b"[]"}, "of /v1/organizations is not one of Soundmark's"),
        ("/v1/projects", {"answer": lambda _: b"[]"}, "the response of /v1/projects is not one of Soundmark's"),
    ],
    ids=[
        "another sound",
        "no sound",
        "an altered intent",
        "no answer",
        "another intent signed",
        "no organisation",
        "no project",
    ],
)
def test_a_dishonest_service_is_detected(
    service: Service, tmp_path: Path, path: str, lie: dict[str, Callable[[bytes], bytes]], refusal: str
) -> None:
    """The comparison is the last line of defence: an intent that verifies but was never requested."""
    with served_in_thread(altering(service.make_other_app(), path, **lie)) as url:
        done = run_demo(tmp_path, url)

    assert refusal in done.refusal
    assert "equals" not in done.out


def test_a_refused_operator_token_is_named_and_not_shown(service: Service, tmp_path: Path) -> None:
    done = run_demo(tmp_path, service.url, token="xop_wrong")

    assert done.refusal == "/v1/organizations answered 401 (unauthenticated)"
    assert "xop_wrong" not in done.out


@pytest.mark.parametrize("token", ["xop_\n", "xop_é"])
def test_an_operator_token_that_no_header_can_carry_is_not_shown(service: Service, tmp_path: Path, token: str) -> None:
    done = run_demo(tmp_path, service.url, token=token)

    assert "xop_" not in done.refusal


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://", "nowhere", "http://[", "ftp://127.0.0.1"])
def test_a_missing_service_is_one_line(tmp_path: Path, url: str) -> None:
    assert "does not answer" in run_demo(tmp_path, url).refusal


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"base_url": 1, "operator_token": 2}', "\udcff"])
def test_a_broken_up_file_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "up.json").write_bytes(text.encode("utf-8", "surrogateescape"))

    assert "up.json" in run("demo", "--up-file", str(tmp_path / "up.json")).refusal


def test_without_a_running_service_it_says_so(tmp_path: Path) -> None:
    assert "no `soundmark up` is running there" in run("demo", "--up-file", str(tmp_path / "up.json")).refusal


def test_a_sound_that_cannot_be_written_is_one_line(service: Service, tmp_path: Path) -> None:
    wav = tmp_path / "missing" / "demo.wav"

    assert run_demo(tmp_path, service.url, "--wav-out", str(wav)).refusal.startswith(f"{wav} cannot be written")


def test_filling_needs_the_database_of_audience(service: Service, tmp_path: Path) -> None:
    """The rest is made through the API, as anybody could."""
    done = run_demo(tmp_path, service.url, "--fill")

    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("soundmark: Audience's database: ")
    assert len(done.err.splitlines()) == 1
