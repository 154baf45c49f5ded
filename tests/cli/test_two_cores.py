"""Two real Core processes on one port and one database: what one has answered holds for both."""

import asyncio
import contextlib
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psutil
import pytest
from soundmark_sdk import read_key_set, verify_answer
from support.api.core_client import PROOF
from support.api.core_settings import AUDIO_CREDENTIAL, MASTER_KEY, OPERATOR_TOKEN
from support.processes.command_server import ForkedCommand, running_command, share_command_server
from support.processes.up_process import clean_environ, until
from support.tenancy.tenant import INTENT

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port
from soundmark.kit.text.timestamps import format_timestamp

CONNECTIONS = 40
ASKED_EACH = 25


@dataclass(frozen=True)
class Cores:
    """Processes that share a port; the kernel decides which one serves a connection."""

    url: str
    pids: frozenset[int]

    def serving(self) -> Counter[int]:
        """Return how many outside connections each process holds."""
        port = httpx2.URL(self.url).port
        return Counter(
            {
                pid: sum(
                    connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == port
                    for connection in psutil.Process(pid).net_connections("tcp")
                )
                for pid in self.pids
            }
        )


def _listens(process: ForkedCommand, port: int) -> bool:
    assert process.poll() is None, "it must start"
    found = psutil.Process(process.pid).net_connections("tcp")
    return any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in found)


@pytest.fixture
def cores(spare_database_url: Secret) -> Iterator[Cores]:
    """Two Cores on one database."""
    environ = {
        "SOUNDMARK_BASE_URL": "http://core.test",
        "SOUNDMARK_CORE_DATABASE_URL": spare_database_url.reveal(),
        "SOUNDMARK_MASTER_KEY": MASTER_KEY,
        "SOUNDMARK_AUDIO_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_CREDENTIAL": "a-credential-of-audience",
        "SOUNDMARK_AUDIO_CREDENTIAL": AUDIO_CREDENTIAL,
        "SOUNDMARK_OPERATOR_TOKEN": OPERATOR_TOKEN,
        "SOUNDMARK_RESOLVE_RATE_LIMIT": "1000000",
    }
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(reserve_port("127.0.0.1", 0)).getsockname()[1]
        command = ["serve", "core", "--port", str(port), "--beside-others"]
        started = [
            stack.enter_context(running_command(share_command_server(), command, clean_environ(environ)))
            for _ in range(2)
        ]
        try:
            until(lambda: all(_listens(process, port) for process in started), 30)
            yield Cores(f"http://127.0.0.1:{port}", frozenset(process.pid for process in started))
        finally:
            for process in started:
                process.send_signal(signal.SIGTERM)
        assert [process.wait(30) for process in started] == [0, 0]


async def make_code(operator: httpx2.AsyncClient) -> dict[str, Any]:
    async def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = (await operator.post(path, json=body)).raise_for_status().json()
        return made

    organization_id = (await post("/v1/organizations", {"name": "Radio Nordlicht"}))["id"]
    project = await post("/v1/projects", {"organization_id": organization_id, "name": "Morning show"})
    request = {
        "organization_id": organization_id,
        "project_id": project["id"],
        "issuer": "Radio Nordlicht",
        "expires_at": format_timestamp(datetime.now(UTC) + timedelta(hours=1)),
        "intent": INTENT,
    }
    return await post("/v1/codes", request)


async def test_no_resolution_that_starts_after_a_revoke_returns_the_intent(cores: Cores) -> None:
    """A thousand resolutions over forty connections to two processes, while one of these answers the revoke.

    Each connection is opened before the race, so which process serves it is known and both are asked throughout.
    """
    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=60)
    async with contextlib.AsyncExitStack() as stack:

        async def client(**options: Any) -> httpx2.AsyncClient:
            made = httpx2.AsyncClient(base_url=cores.url, limits=limits, trust_env=False, timeout=30, **options)
            return await stack.enter_async_context(made)

        operator = await client(headers={"Authorization": f"Bearer {OPERATOR_TOKEN}"})
        code = await make_code(operator)
        path, token = f"/v1/resolve/{code['broadcast_token']}", code["broadcast_token"]
        keys = read_key_set((await operator.get("/v1/keys")).content)
        # The kernel chooses a process at random: that all of forty go to one has a chance of 2 in 10¹².
        receivers = [await client(headers=PROOF) for _ in range(CONNECTIONS)]
        assert {(await receiver.get(path)).status_code for receiver in receivers} == {200}
        served = cores.serving()
        assert min(served.values()) > 1, served  # One of them is the operator's.
        assert sum(served.values()) == CONNECTIONS + 1

        many, revoked = asyncio.Event(), asyncio.Event()
        early: list[int] = []
        late: list[int] = []

        async def ask(receiver: httpx2.AsyncClient) -> None:
            for _ in range(ASKED_EACH):
                is_late = revoked.is_set()
                answer = await receiver.get(path)
                (late if is_late else early).append(answer.status_code)
                if answer.status_code == 200:
                    verify_answer(answer.content, token, keys, datetime.now(UTC))
                if len(early) == 100:
                    many.set()

        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            for receiver in receivers:
                tasks.create_task(ask(receiver))
            await many.wait()
            query = {"organization_id": code["organization_id"]}
            answer = await operator.post(f"/v1/codes/{code['xr_id']}/revoke", params=query)
            revoked.set()
        assert answer.status_code == 200
        # Nobody reconnected: every connection stayed with the same process.
        assert cores.serving() == served
        # Once more over each connection, so that no process escaped only because it was asked early.
        late += [(await receiver.get(path)).status_code for receiver in receivers]

    assert (len(early) + len(late), set(late)) == (CONNECTIONS * (ASKED_EACH + 1), {404})
    assert (set(early[:100]), set(early) <= {200, 404}) == ({200}, True)
