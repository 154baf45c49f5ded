"""Rendering for a tenant, and how Core behaves when the audio component fails in each way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.core_settings import AUDIO_CREDENTIAL, core_settings
from support.processes.running_apps import running_core, served_in_thread
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.audio.app import create_app as create_audio_app
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server import sockets
from soundmark.settings import AudioSettings, read

WAV_START = b"RIFF\x00\x00\x00\x00WAVE"


def answering(status: int, media_type: str, body: bytes) -> Any:
    """Return a component that gives the same answer to every request."""

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = [(b"content-type", media_type.encode())]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    return app


async def silent(scope: Any, receive: Any, _send: Any) -> None:
    """Take the request and never answer."""
    await until_the_caller_leaves(scope, receive)


async def stalled(scope: Any, receive: Any, send: Any) -> None:
    """Begin a proper answer, and stop in the middle."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"audio/wav")]})
        await send({"type": "http.response.body", "body": WAV_START, "more_body": True})
    await until_the_caller_leaves(scope, receive)


async def until_the_caller_leaves(scope: Any, receive: Any) -> None:
    while scope["type"] == "http" and (await receive())["type"] != "http.disconnect":
        pass


def audio_with(*credentials: str) -> Any:
    return create_audio_app(read(AudioSettings, {"SOUNDMARK_AUDIO_CREDENTIAL": ",".join(credentials)}))


@contextlib.contextmanager
def nobody_listening() -> Iterator[str]:
    with sockets.reserve_port("127.0.0.1", 0) as sock:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"


FAILURES: dict[str, Callable[[], contextlib.AbstractContextManager[str]]] = {
    "down": nobody_listening,
    "silent": lambda: served_in_thread(silent),
    "stalled": lambda: served_in_thread(stalled),
    "late": lambda: served_in_thread(answering(503, "application/problem+json", b'{"code":"deadline_passed"}')),
    "another credential": lambda: served_in_thread(audio_with("not-the-credential-of-core")),
    "an error page": lambda: served_in_thread(answering(200, "text/html", b"<h1>It works</h1>")),
    "no sound": lambda: served_in_thread(answering(200, "audio/wav", b"not a wav file at all")),
    "endless": lambda: served_in_thread(answering(200, "audio/wav", WAV_START + bytes(2 * 1024 * 1024))),
}


@contextlib.asynccontextmanager
async def core_beside(audio_url: str, database_url: Secret, timeout_s: int = 30) -> AsyncIterator[Api]:
    settings = core_settings(
        database_url, audio_url=audio_url, private_timeout_s=str(timeout_s), private_response_bytes_max="1048576"
    )
    async with running_core(settings) as api:
        yield api


async def render(tenant: Tenant, code: dict[str, Any], **query: Any) -> Any:
    return await tenant.api.get(f"/v1/codes/{code['xr_id']}/audio", params={**tenant.query, **query})


@pytest.mark.parametrize("protocol", [3, 4, 5, None])
async def test_the_sound_of_a_code_carries_its_frame(
    spare_database_url: Secret, decode: Callable[[bytes], str | None], protocol: int | None
) -> None:
    """From a tenant's request through Core and the component to a decoder that knows neither."""
    with served_in_thread(audio_with(AUDIO_CREDENTIAL)) as audio_url:
        async with core_beside(audio_url, spare_database_url) as api:
            tenant = await make_tenant(api)
            code = await tenant.make_code()

            answer = await render(tenant, code, **({} if protocol is None else {"protocol": protocol}))

    assert (answer.status, answer.headers["content-type"]) == (200, "audio/wav")
    assert answer.headers["content-disposition"] == f'attachment; filename="{code["xr_id"]}.wav"'
    assert decode(answer.body) == code["broadcast_frame"]


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_component_that_fails_affects_nothing_else(spare_database_url: Secret, failure: str) -> None:
    """The tenant gets an answer within the deadline of a second, and everything else keeps working meanwhile."""
    with FAILURES[failure]() as audio_url:
        async with core_beside(audio_url, spare_database_url, timeout_s=1) as api, asyncio.timeout(60):
            tenant = await make_tenant(api)
            code = await tenant.make_code()

            failed, issued, resolved = await asyncio.gather(
                render(tenant, code), tenant.make_code(), api.resolve(code["broadcast_token"])
            )

            assert (failed.status, failed.code) == (503, "audio_unavailable")
            assert issued["status"] == "active"
            assert resolved.status == 200
            assert (await tenant.revoke(code["xr_id"])).json["status"] == "revoked"


async def test_a_credential_is_rotated_without_a_gap(spare_database_url: Secret) -> None:
    """The component accepts both for a while; Core sends the first of its own."""
    with served_in_thread(audio_with("the-old-credential-of-two", "the-new-credential-of-two")) as audio_url:
        for credentials in ("the-old-credential-of-two", "the-new-credential-of-two,the-old-credential-of-two"):
            settings = core_settings(spare_database_url, audio_url=audio_url, audio_credential=credentials)
            async with running_core(settings) as api:
                tenant = await make_tenant(api)

                assert (await render(tenant, await tenant.make_code())).status == 200
