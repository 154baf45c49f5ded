"""The sandbox, on a real loopback socket in this event loop."""

import asyncio
import contextlib
import functools
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.server import sockets
from soundmark.kit.http.server.connection import ConnectionGate, ConnectionLimits
from soundmark.sandbox.app import create_app
from soundmark.sandbox.hanging_up import HangingUpConnection
from soundmark.sandbox.options import SandboxOptions, choose_credentials, settings_for_core
from support.processes.secret_leaks import remember_secret


@dataclass(frozen=True)
class RunningSandbox:
    """A running sandbox, a client of it, and a faster one that calls its API for control in the process."""

    url: str
    options: SandboxOptions
    client: httpx2.AsyncClient
    inside: httpx2.AsyncClient

    def settings(self) -> dict[str, str]:
        """Return the settings with which a Core uses it, by name without prefix."""
        return settings_for_core(self.url, self.options)

    def secret(self, name: str) -> str:
        """Return one credential, by the name of Core's setting."""
        return self.options.secret(name)

    async def control(self, path: str, /, **fields: Any) -> Any:
        """Do something at `/control`, and return the answer."""
        response = await self.inside.post(f"/control{path}", json=fields)
        assert response.status_code == 200, response.text
        return response.json()

    async def look(self, system: str) -> Any:
        """Return everything that one system remembers."""
        response = await self.inside.get(f"/control/{system}")
        assert response.status_code == 200, response.text
        return response.json()

    async def misbehave(self, system: str, kind: str, **fields: Any) -> None:
        """Turn a switch on: `operation`, `times` (0: until reset), `seconds`, `merge` and `headers` are optional."""
        await self.control("/switches", system=system, kind=kind, **fields)

    async def hold(self, system: str, operation: str = "*", times: int = 1) -> None:
        """Let the next answer of a system wait until `release`; its work is done."""
        await self.misbehave(system, "held_answer", operation=operation, times=times)

    async def until_held(self, system: str, count: int = 1) -> None:
        """Wait until this many answers of a system wait."""
        await self.control("/answers/await", system=system, count=count, seconds=60)  # A process may have to start.

    async def release(self, system: str) -> None:
        """Let the answers of a system go that wait."""
        await self.control("/answers/release", system=system)

    async def calls(self, system: str) -> list[dict[str, Any]]:
        """Return the requests to the operations of a system, the oldest first."""
        return [call for call in (await self.look("calls"))["calls"] if call["system"] == system]

    async def complaints(self) -> list[str]:
        """Return what no careful client would have sent."""
        complaints: list[str] = (await self.look("calls"))["complaints"]
        return complaints

    async def settle(self) -> list[dict[str, Any]]:
        """Wait until no webhook is on its way; return all, the oldest first."""
        await self.control("/webhooks/settle")
        webhooks: list[dict[str, Any]] = (await self.look("webhooks"))["webhooks"]
        return webhooks[::-1]


class _Server(uvicorn.Server):
    """A uvicorn server whose process has signal handlers of its own, and that reports when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listens = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[Any] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.listens.set()


@contextlib.asynccontextmanager
async def running_sandbox(
    *,
    core_url: str = "",
    deliver_to: Any = None,
    clock: Clock | None = None,
    retry_pauses_s: tuple[float, ...] = (),
    tls: ssl.SSLContext | None = None,
    **credentials: str,
) -> AsyncIterator[RunningSandbox]:
    """Run a sandbox.

    Webhooks go to `core_url`, or to the app `deliver_to` without a network. `credentials` are by the names of Core's
    settings; those that are missing are made up. With `tls` it serves over TLS.
    """
    chosen = choose_credentials({}, SystemEntropy())
    chosen.update({name: type(chosen[name])(value) for name, value in credentials.items()})
    for secret in chosen.values():
        for part in secret.reveal().split(","):
            remember_secret(part)
    options = SandboxOptions(core_url, chosen, retry_pauses_s=retry_pauses_s, refusal_pause_s=0)
    transport = None if deliver_to is None else httpx2.ASGITransport(app=deliver_to, raise_app_exceptions=False)
    app = create_app(options, clock=clock, transport=transport)
    config = uvicorn.Config(app, ws="none", log_config=None, server_header=False, timeout_graceful_shutdown=2)
    config.load()
    config.ssl = tls
    gate = ConnectionGate(ConnectionLimits())
    config.http_protocol_class = functools.partial(HangingUpConnection, gate=gate)  # type: ignore[assignment]  # it is called
    server = _Server(config)
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        url = f"{'http' if tls is None else 'https'}://127.0.0.1:{sock.getsockname()[1]}"
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            listening = asyncio.create_task(server.listens.wait())
            await asyncio.wait({serving, listening}, return_when=asyncio.FIRST_COMPLETED)
            assert server.started, "the sandbox must start"
            inside = httpx2.AsyncClient(base_url=url, transport=httpx2.ASGITransport(app=app))
            async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=30) as client, inside:
                yield RunningSandbox(url, options, client, inside)
        finally:
            server.should_exit = True
            await serving
