"""A console that dies while somebody signs out."""

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from starlette.responses import Response
from support.console.client import CSRF_TOKEN
from support.identity.oidc_issuer import CLIENT_ID, REVOCATION, OidcIssuer, running_issuer
from support.processes.fake_clock import FakeClock
from support.processes.killable import running_console

from soundmark.console.sealed_cookies import CookieJar
from soundmark.console.session import Session
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.http.server.sockets import reserve_port

SIGNED_IN, SIGNED_OUT = 503, 303  # Without Core, a page fails for somebody who is signed in. Others are sent away.


@dataclass
class Site:
    """A console that a test starts again and again, and the browser of one person who is signed in there."""

    issuer: OidcIssuer
    port: int
    state: Path
    browser: httpx2.AsyncClient

    def running(self) -> contextlib.AbstractContextManager[object]:
        return running_console(
            self.port,
            console_key="A" * 43,
            console_state_path=str(self.state),
            oidc_issuer=self.issuer.url,
            oidc_client_id=CLIENT_ID,
        )

    async def open_page(self) -> int:
        return (await self.browser.get("/organizations")).status_code

    async def sign_out(self) -> int:
        """Sign out, and keep a copy of the cookie."""
        headers = {"origin": str(self.browser.base_url), "cookie": self.browser.headers["cookie"]}
        answer = await self.browser.post("/sign-out", data={"csrf_token": CSRF_TOKEN}, headers=headers)
        return answer.status_code


@pytest.fixture
async def site(clock: FakeClock, tmp_path: Path) -> AsyncIterator[Site]:
    """A port for consoles that are killed, and a person who signs in there."""
    with reserve_port("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        async with running_issuer(clock) as issuer, _browser_of(port) as browser:
            yield Site(issuer, port, tmp_path, browser)


def _browser_of(port: int) -> httpx2.AsyncClient:
    now = datetime.now(UTC)
    tokens = ("an-access-token", now + timedelta(hours=1), "a-refresh-token")
    session = Session("oidc", "alice", None, CSRF_TOKEN, now, False, *tokens)
    response = Response()
    CookieJar(Sealer(bytes(32), SystemEntropy()), f"soundmark-{port}-", is_secure=False).write(
        response, "session", session
    )
    cookie = response.headers["set-cookie"].partition(";")[0]
    url = f"http://127.0.0.1:{port}"
    return httpx2.AsyncClient(base_url=url, headers={"cookie": cookie}, trust_env=False, timeout=60)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on the file of ended sessions."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


async def until_waiting_for_a_lock(pid: int) -> None:
    async with asyncio.timeout(60):
        while not any("->" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines()):  # noqa: ASYNC110, ASYNC240 - the event happens in the kernel
            await asyncio.sleep(0.01)


async def test_a_console_that_dies_before_the_revocation_has_ended_the_session(site: Site) -> None:
    has_begun = asyncio.Event()

    async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        has_begun.set()
        await asyncio.Event().wait()

    with site.running() as console:
        assert await site.open_page() == SIGNED_IN
        site.issuer.behaviour[REVOCATION] = hang
        leaving = asyncio.ensure_future(site.sign_out())
        await has_begun.wait()
        console.kill()
        with pytest.raises(httpx2.HTTPError):
            await leaving
    site.issuer.behaviour.clear()
    site.issuer.revocations.clear()
    with site.running():
        assert await site.open_page() == SIGNED_OUT
        assert await site.sign_out() == 200
        assert [form["token"] for form in site.issuer.revocations] == ["a-refresh-token"], "what was left to do"


async def test_a_console_that_dies_before_it_recorded_the_end_has_revoked_nothing(site: Site) -> None:
    """So nothing is half done: the person is still signed in, and signs out again."""
    with site.running() as console:
        assert await site.open_page() == SIGNED_IN
        with locked(site.state / "ended-sessions"):
            leaving = asyncio.ensure_future(site.sign_out())
            await until_waiting_for_a_lock(console.pid)
            console.kill()
            with pytest.raises(httpx2.HTTPError):
                await leaving
    assert site.issuer.revocations == []
    with site.running():
        assert await site.open_page() == SIGNED_IN
        assert await site.sign_out() == 200
        assert await site.open_page() == SIGNED_OUT
