"""Large downloads: each waits on the disk until it is whole, so a process takes few at the same time."""

import asyncio

import httpx2
import pytest
from support.console.client import ConsoleClient
from support.console.faulty_core import HeldAnswer
from support.processes.running_apps import served_in_loop
from support.tenancy.tenant import Tenant

from soundmark.console.disk_slots import SLOTS_COUNT
from soundmark.kit.http.server import sockets

LARGE = b"x" * 5 * 1024 * 1024


@pytest.fixture
async def sound(tenant: Tenant, codes: str) -> str:
    """The path of a download."""
    return f"{codes}/{(await tenant.make_code())['xr_id']}/sound.wav"


def hold(operator: ConsoleClient, sound: str) -> HeldAnswer:
    """Let Core begin the sound with as much as does not fit into memory."""
    return operator.core.hold(f"GET /v1/codes/{sound.split('/')[-2]}/audio", LARGE)


async def test_one_large_download_too_many_is_asked_to_wait(
    operator: ConsoleClient, tenant: Tenant, sound: str
) -> None:
    held = hold(operator, sound)
    running = [asyncio.ensure_future(operator.get(sound)) for _ in range(SLOTS_COUNT)]
    for _ in running:
        await held.begun.get()

    page = await operator.get(sound)
    assert (page.status, page.trouble, page.headers["retry-after"]) == (503, "downloads_busy", "30")
    assert "Try again in 30 seconds." in page.text
    assert page.find(".//main//a[@class='button']").get("href") == sound
    small = await operator.get(f"/organizations/{tenant.organization_id}/audit-log/download?format=csv")
    assert small.status == 200, "what fits into memory needs no room"
    held.may_end.set()
    assert [answer.response.content for answer in await asyncio.gather(*running)] == [LARGE + b"end"] * SLOTS_COUNT

    assert (await operator.get(sound)).status == 200, "there is room again"


async def test_a_download_that_fails_leaves_its_room(operator: ConsoleClient, sound: str) -> None:
    held = hold(operator, sound)
    held.may_end.set()
    held.error = httpx2.ReadError("the test breaks the answer off")
    failed = await asyncio.gather(*(operator.get(sound) for _ in range(SLOTS_COUNT)))
    assert {page.trouble for page in failed} == {"core_unreachable"}

    held.error = None
    answers = await asyncio.gather(*(operator.get(sound) for _ in range(SLOTS_COUNT)))
    assert [answer.status for answer in answers] == [200] * SLOTS_COUNT


async def test_a_browser_that_hangs_up_ends_its_download(operator: ConsoleClient, sound: str) -> None:
    """Core stops making what nobody will save, and there is room for others."""
    held = hold(operator, sound)
    cookies = "; ".join(f"{name}={value}" for name, value in operator.cookies.items())
    request = f"GET {sound} HTTP/1.1\r\nhost: 127.0.0.1:8083\r\ncookie: {cookies}\r\n\r\n"
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        async with served_in_loop(operator.app, sock, is_running=True):
            for _ in range(SLOTS_COUNT + 1):
                _, writer = await asyncio.open_connection(*sock.getsockname()[:2])
                writer.write(request.encode())
                await held.begun.get()
                writer.close()
                await held.left.get()

    held.may_end.set()
    assert (await operator.get(sound)).status == 200
