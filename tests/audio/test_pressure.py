"""More requests than can be rendered: a real server whose renderer waits until it is released."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import uvicorn
from prometheus_client import REGISTRY

from soundmark.audio import app as audio_app
from soundmark.audio.render import WAITING_MAX, Protocol, Renderer
from soundmark.kit.http.server import sockets
from soundmark.settings import AudioSettings, read

CREDENTIAL = "credential-of-this-test"


class GatedRenderer(Renderer):
    """The real renderer behind a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: list[str] = []
        self.started = threading.Event()
        self.gate = threading.Event()

    def render(self, frame: str, protocol: Protocol) -> bytes:
        self.requested.append(frame)
        self.started.set()
        assert self.gate.wait(30)
        return super().render(frame, protocol)


@pytest.fixture
async def served(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[httpx2.AsyncClient, GatedRenderer]]:
    """The audio component on a socket, with a renderer that waits for the test."""
    renderer = GatedRenderer()
    monkeypatch.setattr(audio_app, "Renderer", lambda: renderer)
    app: Any = audio_app.create_app(read(AudioSettings, {"SOUNDMARK_AUDIO_CREDENTIAL": CREDENTIAL}))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", access_log=False))
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        sockets.listen(sock)  # Connections wait here until the server takes them.
        serving = asyncio.create_task(server._serve([sock]))
        client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{sock.getsockname()[1]}",
            headers={"authorization": f"Bearer {CREDENTIAL}"},
            limits=httpx2.Limits(max_connections=None),
            timeout=60,
            trust_env=False,
        )
        async with client:
            yield client, renderer
            renderer.gate.set()
        server.should_exit = True
        await serving


def frame(number: int) -> dict[str, object]:
    return {"frame": f"XRC1:brd_{number:016}", "protocol": 5}


async def until_waiting(client: httpx2.AsyncClient, count: int) -> None:
    """Return once exactly `count` callers are inside; health answers meanwhile, whatever is rendered.

    It answers once more afterwards: a caller who leaves is taken from the queue in the next turn of the event loop.
    """
    is_reached = False
    while not is_reached:
        is_reached = REGISTRY.get_sample_value("soundmark_audio_waiting") == count
        (await client.get("/healthz")).raise_for_status()


async def test_a_full_queue_refuses_at_once_and_loses_nobody(
    served: tuple[httpx2.AsyncClient, GatedRenderer],
) -> None:
    client, renderer = served
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(client.post("/render", json=frame(n))) for n in range(WAITING_MAX)]
        await until_waiting(client, WAITING_MAX)

        refused = await client.post("/render", json=frame(WAITING_MAX))
        renderer.gate.set()

    assert (refused.status_code, refused.json()["code"]) == (503, "audio_busy")
    assert refused.headers["retry-after"] == "1"
    assert {task.result().status_code for task in waiting} == {200}
    assert (await client.post("/render", json=frame(1))).status_code == 200


async def test_a_caller_that_hung_up_is_not_rendered(served: tuple[httpx2.AsyncClient, GatedRenderer]) -> None:
    client, renderer = served
    first = asyncio.create_task(client.post("/render", json=frame(1)))
    await asyncio.to_thread(renderer.started.wait, 30)
    impatient = asyncio.create_task(client.post("/render", json=frame(2)))
    await until_waiting(client, 2)

    impatient.cancel()  # httpx2 closes the connection.
    await until_waiting(client, 1)
    renderer.gate.set()

    assert (await first).status_code == 200
    assert (await client.post("/render", json=frame(3))).status_code == 200
    assert renderer.requested == [frame(1)["frame"], frame(3)["frame"]]


async def test_a_caller_whose_deadline_passed_is_not_rendered(
    served: tuple[httpx2.AsyncClient, GatedRenderer],
) -> None:
    client, renderer = served
    first = asyncio.create_task(client.post("/render", json=frame(1)))
    await asyncio.to_thread(renderer.started.wait, 30)

    late = await client.post("/render", json=frame(2), headers={"x-svc-timeout-ms": "50"})
    renderer.gate.set()

    assert (late.status_code, late.json()["code"]) == (503, "deadline_passed")
    assert (await first).status_code == 200
    assert (await client.post("/render", json=frame(3))).status_code == 200
    assert renderer.requested == [frame(1)["frame"], frame(3)["frame"]]


async def test_a_failed_rendering_is_reported_without_details(
    served: tuple[httpx2.AsyncClient, GatedRenderer], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, renderer = served
    renderer.gate.set()
    with monkeypatch.context() as broken:
        broken.setattr("ggwave.encode", lambda *_args, **_kwargs: b"")
        failed = await client.post("/render", json=frame(1))

    assert (failed.status_code, failed.json()["code"]) == (500, "internal_error")
    assert "ggwave" not in failed.text
    assert (await client.post("/render", json=frame(1))).status_code == 200
