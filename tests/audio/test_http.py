"""The component as a real process: its only route, its credential, its problems, its metrics and its log."""

import io
import json
import wave
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from support.api.raw_requests import METHODS, send_raw
from support.processes.running_apps import served_in_thread

from soundmark.audio.app import create_app
from soundmark.settings import AudioSettings, read

from .conftest import CREDENTIALS, AudioProcess

FRAME = "XRC1:brd_aZ09-_bY18-_cX27"
GOOD = {"frame": FRAME, "protocol": 4}


@pytest.mark.parametrize(("protocol", "samples_count"), [(3, 152_576), (4, 112_640), (5, 72_704)])
def test_every_protocol_answers_a_wav_that_carries_the_frame(
    audio: AudioProcess, decode: Callable[[bytes], str | None], protocol: int, samples_count: int
) -> None:
    answer = audio.ask(FRAME, protocol)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/wav")
    with wave.open(io.BytesIO(answer.content)) as reader:
        assert reader.getparams()[:5] == (1, 2, 48_000, samples_count, "NONE")
    assert len(answer.content) == 44 + 2 * samples_count
    assert decode(answer.content) == FRAME


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_either_credential_of_a_pair_is_accepted(audio: AudioProcess, credential: str) -> None:
    answer = audio.client.post("/render", json=GOOD, headers={"authorization": f"Bearer {credential}"})

    assert answer.status_code == 200


def test_without_the_credential_every_path_answers_alike(audio: AudioProcess, subtests: pytest.Subtests) -> None:
    """Neither the existing paths nor the validity of the body are revealed."""
    for authorization in [
        "",
        "Bearer",
        "Bearer wrong-credential-altogether",
        f"Bearer {CREDENTIALS[0]}x",
        f"Bearer {','.join(CREDENTIALS)}",
        f"Basic {CREDENTIALS[0]}",
        CREDENTIALS[0],
    ]:
        for method, path in [("POST", "/render"), ("GET", "/render"), ("GET", "/nowhere")]:
            with subtests.test(authorization=authorization, method=method, path=path):
                answer = audio.client.request(method, path, content=b"{", headers={"authorization": authorization})

                assert_problem(answer, 401, "unauthenticated")
                assert answer.headers["www-authenticate"] == "Bearer"


def test_no_method_and_no_spelling_of_a_path_passes_without_the_credential(
    audio: AudioProcess, subtests: pytest.Subtests
) -> None:
    for method in METHODS:
        with subtests.test(method=method):
            url = str(audio.client.base_url)
            spellings = [
                b"/render",
                b"/",
                b"//render",
                b"/render/",
                b"/RENDER",
                b"/render%00",
                b"/render;x",
                b"/metrics",
            ]
            spellings += [
                b"/healthz" + way + b"/render" for way in (b"/..", b"/%2e%2e", b"/..%2f..", b";", b"%00", b"%2f", b"//")
            ]
            for target in spellings:
                answer = send_raw(url, target, method=method)
                assert answer.status in {400, 401}, target


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b'{"frame":NaN}', b'{"protocol":4,"protocol":5}', rb'{"frame":"\ud800"}'],
    ids=["empty", "broken", "no UTF-8", "NaN", "duplicate member", "lone surrogate"],
)
def test_a_body_that_is_not_json_is_malformed(audio: AudioProcess, body: bytes) -> None:
    answer = audio.client.post("/render", content=body, headers={"content-type": "application/json"})

    assert_problem(answer, 400, "malformed_json")


def test_only_a_frame_and_an_ultrasound_protocol_are_rendered(audio: AudioProcess, subtests: pytest.Subtests) -> None:
    for body, pointer in [
        ([], ""),
        ("text", ""),
        ({}, "/frame"),
        ({"frame": FRAME}, "/protocol"),
        ({**GOOD, "volume": 100}, "/volume"),
        ({**GOOD, "a/b~c": 1}, "/a~1b~0c"),
        *[({**GOOD, "protocol": protocol}, "/protocol") for protocol in (-1, 0, 1, 2, 6, 4.5, "4", True, None, 1e400)],
        *[
            ({**GOOD, "frame": frame}, "/frame")
            for frame in ("", FRAME[5:], FRAME[:-1], FRAME + "A", FRAME + "\n", " " + FRAME, FRAME[:-1] + "+", None, 1)
        ],
        ({**GOOD, "frame": "XRC2" + FRAME[4:]}, "/frame"),
        ({**GOOD, "frame": FRAME.replace("brd_", "xak_")}, "/frame"),
    ]:
        with subtests.test(body=body, pointer=pointer):
            content = json.dumps(body).replace("Infinity", "1e400")

            answer = audio.client.post("/render", content=content, headers={"content-type": "application/json"})

            assert_problem(answer, 422, "validation_failed")
            assert pointer in {error["pointer"] for error in answer.json()["errors"]}


async def test_a_failed_rendering_is_reported_without_details(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_frame: str, _protocol: int) -> bytes:
        raise RuntimeError("no sound today")

    settings = read(AudioSettings, {"SOUNDMARK_AUDIO_CREDENTIAL": ",".join(CREDENTIALS)})
    with served_in_thread(create_app(settings)) as url:
        async with httpx2.AsyncClient(base_url=url, trust_env=False) as client:
            headers = {"authorization": f"Bearer {CREDENTIALS[0]}"}
            with monkeypatch.context() as broken:
                broken.setattr("soundmark.audio.synthesis.render_wav", fail)
                failed = await client.post("/render", json=GOOD, headers=headers)
            rendered = await client.post("/render", json=GOOD, headers=headers)

    assert_problem(failed, 500, "internal_error")
    assert "no sound" not in failed.text
    assert rendered.status_code == 200


@pytest.mark.parametrize("media_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/json5"])
def test_only_json_is_read(audio: AudioProcess, media_type: str) -> None:
    answer = audio.client.post("/render", content=json.dumps(GOOD), headers={"content-type": media_type})

    assert_problem(answer, 415, "unsupported_media_type")


def test_a_large_body_is_refused(audio: AudioProcess) -> None:
    assert_problem(audio.client.post("/render", json={**GOOD, "more": "x" * 1024}), 413, "payload_too_large")


def test_a_large_body_of_undeclared_length_is_refused(audio: AudioProcess) -> None:
    chunks = iter([b"{", b" " * 1024, b"}"])
    answer = audio.client.post("/render", content=chunks, headers={"content-type": "application/json"})

    assert_problem(answer, 413, "payload_too_large")


def test_there_is_one_route_and_no_documentation_beside_it(audio: AudioProcess) -> None:
    assert_problem(audio.client.get("/render"), 405, "method_not_allowed")
    for path in ("/", "/docs", "/openapi.json", "/metrics", "/render/"):
        assert_problem(audio.client.get(path), 404, "not_found")


@pytest.mark.parametrize(
    ("path", "body"),
    [("/healthz", {"status": "ok"}), ("/readyz", {"status": "ready", "unavailable": [], "degraded": []})],
)
def test_health_is_open(audio: AudioProcess, path: str, body: dict[str, Any]) -> None:
    answer = audio.client.get(path, headers={"authorization": ""})

    assert (answer.status_code, answer.json()) == (200, body)


def test_metrics_count_without_naming_a_frame(audio: AudioProcess) -> None:
    audio.ask(FRAME).raise_for_status()

    metrics = audio.metrics()

    assert 'soundmark_audio_renders_total{outcome="rendered"}' in metrics
    assert "soundmark_audio_render_seconds_bucket" in metrics
    assert "brd_" not in metrics


def test_the_log_holds_neither_frames_nor_credentials(audio: AudioProcess) -> None:
    audio.ask(FRAME).raise_for_status()
    audio.ask(FRAME + "x")
    audio.client.get(f"/{FRAME}")

    log = audio.log()

    assert '"route": "/render"' in log
    assert "brd_" not in log
    assert not any(credential in log for credential in CREDENTIALS)


@pytest.mark.parametrize("timeout", ["", "0", "soon", "-1", "1.5"])
def test_a_malformed_timeout_is_ignored(audio: AudioProcess, timeout: str) -> None:
    assert audio.client.post("/render", json=GOOD, headers={"x-svc-timeout-ms": timeout}).status_code == 200


def test_the_log_names_the_calling_process(audio: AudioProcess) -> None:
    audio.client.post("/render", json=GOOD, headers={"x-svc-caller": "soundmark-of-this-test"}).raise_for_status()
    audio.client.post("/render", json=GOOD, headers={"x-svc-caller": "not a name"}).raise_for_status()

    log = audio.log()

    assert '"caller": "soundmark-of-this-test"' in log
    assert "not a name" not in log


def assert_problem(answer: Any, status: int, code: str) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    document = answer.json()
    assert (document["status"], document["code"], document["type"]) == (status, code, f"/problems/{code}")
    assert document["request_id"] == answer.headers["x-request-id"]
    assert "aZ09" not in answer.text  # The requested frame.
