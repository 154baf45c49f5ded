"""Requests to URLs that somebody else chose, and servers that misbehave."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from support.outside import misbehaving_server as behaviours
from support.outside.misbehaving_server import Behaviour, MisbehavingServer, misbehaving_server
from support.outside.private_authority import make_authority, tls_server

from soundmark.kit.http.outbound import guarded_client, resolving
from soundmark.kit.http.outbound.guarded_client import GuardedClient, NotSent
from soundmark.kit.http.outbound.resolving import Resolver

_ENOUGH_S = 10.0


class _Names:
    """A resolver's operating system, which gives each answer once and the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[bytes] = []

    def __call__(self, host: bytes) -> Sequence[str]:
        self.asked.append(host)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@contextlib.asynccontextmanager
async def _client(
    *answers: Sequence[str], allow_loopback: bool = True, ca_file: Path | None = None
) -> AsyncIterator[GuardedClient]:
    resolver = Resolver(_Names(*answers)) if answers else None
    client = GuardedClient(connections_max=8, allow_loopback=allow_loopback, extra_ca_file=ca_file, resolver=resolver)
    try:
        yield client
    finally:
        await client.aclose()


async def _post(client: GuardedClient, url: str, *, timeout_s: float = _ENOUGH_S) -> int | str:
    """Return the status of the response, or why no response came."""
    try:
        return await client.post(url, {"x-test": "yes"}, b'{"a":1}', timeout_s=timeout_s)
    except NotSent as failed:
        return failed.reason


async def test_a_request_arrives_as_it_was_given() -> None:
    async with misbehaving_server(behaviours.answer(b"fine")) as server, _client() as client:
        assert await _post(client, f"{server.url}/a%20b?c=d") == 200
        authority = server.url.removeprefix("http://")
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert (first, body) == ("POST /a%20b?c=d HTTP/1.1", b'{"a":1}')
    assert sorted(headers) == ["content-length: 7", f"host: {authority}", "x-test: yes"]


async def test_every_status_is_an_answer_and_no_redirect_is_followed(subtests: pytest.Subtests) -> None:
    for status in ["204 No Content", "302 Found", "410 Gone", "500 Internal Server Error"]:
        with subtests.test(status=status):
            redirect = f"HTTP/1.1 {status}\r\nlocation: /elsewhere\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n"
            async with misbehaving_server(behaviours.raw(redirect.encode())) as server, _client() as client:
                assert await _post(client, server.url) == int(status[:3])
                assert await _post(client, server.url) == int(status[:3])
            assert len(server.requests) == 2
            assert b"cookie" not in server.requests[1]


@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        (behaviours.silent, "timeout"),
        (behaviours.slow_headers, "timeout"),
        (behaviours.dripping, 200),
        (behaviours.endless, 200),
        (behaviours.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"), 200),
        (behaviours.raw(b""), "connection_lost"),
        (behaviours.raw(b"HTTP/1.1 200 OK\r\ncontent-le"), "connection_lost"),
        (behaviours.raw(b"220 mail.example.org ESMTP\r\n\r\n"), "invalid_response"),
        (behaviours.raw(b"HTTP/1.1 200 OK\r\n" + b"x-long: " + b"x" * 200_000), "invalid_response"),
    ],
    ids=["hangs", "slow_headers", "dripping", "endless", "half", "hangs_up", "half_a_head", "no_http", "long_head"],
)
async def test_what_a_server_does_ends_in_time_and_in_one_of_our_words(
    behave: Behaviour, expected: int | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded_client, "_BODY_S", 0.3)
    timeout_s = 0.3 if expected == "timeout" else _ENOUGH_S
    async with misbehaving_server(behave) as server, _client() as client:
        assert await _post(client, server.url, timeout_s=timeout_s) == expected


async def test_a_connection_that_is_reset_is_lost() -> None:
    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with misbehaving_server(reset) as server, _client() as client:
        assert await _post(client, server.url) == "connection_lost"


async def test_a_port_where_nobody_listens_fails() -> None:
    async with misbehaving_server(behaviours.answer()) as server:
        url = server.url
    async with _client() as client:
        assert await _post(client, url) == "connection_failed"


async def test_a_connection_is_kept_and_is_not_looked_up_again() -> None:
    """Only a new connection resolves the name, and what it resolved to is what it connects to."""

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            await reader.readuntil(b'{"a":1}')

    names = _Names(["127.0.0.1"], ["10.0.0.1"])
    client = GuardedClient(connections_max=8, allow_loopback=True, extra_ca_file=None, resolver=Resolver(names))
    async with contextlib.aclosing(client), misbehaving_server(keep) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        assert [await _post(client, url) for _ in range(2)] == [200, 200]
        assert names.asked == [b"localhost"]
        assert await _post(client, url.replace("http:", "https:")) == "address_refused"
        assert len(names.asked) == 2


async def test_a_name_with_any_address_inside_is_refused(subtests: pytest.Subtests) -> None:
    """Also where this machine may be connected to: only the names of this machine lead there."""
    for answers in [["127.0.0.1"], ["::ffff:127.0.0.1"], ["1.1.1.1", "192.168.0.1"], ["fe80::1"]]:
        with subtests.test(answers=answers):
            for allow_loopback in (True, False):
                async with _client(answers, allow_loopback=allow_loopback) as client:
                    assert await _post(client, "https://hooks.example.org/") == "address_refused"


async def test_the_name_of_this_machine_leads_nowhere_else() -> None:
    async with _client(["1.1.1.1"]) as client:
        assert await _post(client, "http://localhost/") == "address_refused"


async def test_a_url_that_may_not_be_set_is_not_sent_to() -> None:
    async with misbehaving_server(behaviours.answer()) as server, _client(allow_loopback=False) as client:
        assert await _post(client, server.url) == "url_refused"
        assert await _post(client, "https://user@hooks.example.org/") == "url_refused"
    assert server.requests == []


async def test_the_next_address_is_tried() -> None:
    """The server listens on the second address only."""
    async with misbehaving_server(behaviours.answer()) as server, _client(["127.9.9.9", "127.0.0.1"]) as client:
        assert await _post(client, server.url.replace("127.0.0.1", "localhost")) == 200


async def test_a_certificate_is_checked_for_the_name_not_for_the_address(tmp_path: Path) -> None:
    authority = make_authority(tmp_path, "127.0.0.1")
    async with tls_server(authority, behaviours.answer()) as server:
        by_name = server.url.replace("127.0.0.1", "localhost")
        async with _client(["127.0.0.1"], ca_file=authority.ca_file) as client:
            assert await _post(client, server.url) == 200
            assert await _post(client, by_name) == "tls_failed"
        async with _client() as stranger:
            assert await _post(stranger, server.url) == "tls_failed"


async def test_the_server_is_named_when_tls_begins(tmp_path: Path) -> None:
    named: list[str | None] = []
    authority = make_authority(tmp_path, "127.0.0.1")
    context = authority.server_context()

    def note(_: ssl.SSLObject | ssl.SSLSocket, name: str | None, __: ssl.SSLContext) -> None:
        named.append(name)

    context.sni_callback = note
    async with misbehaving_server(behaviours.answer(), tls=context) as server, _client(["127.0.0.1"]) as client:
        await _post(client, server.url.replace("127.0.0.1", "localhost"))
    assert named == ["localhost"]


@pytest.mark.parametrize("plain", [True, False])
async def test_a_server_without_tls_fails(*, plain: bool) -> None:
    behave = behaviours.raw(b"HTTP/1.1 200 OK\r\n\r\n") if plain else behaviours.raw(b"")
    async with _any_server(behave) as server, _client() as client:
        assert await _post(client, server.url.replace("http:", "https:")) == "tls_failed"


async def test_a_name_without_an_address_is_not_resolved() -> None:
    def fail(_: bytes) -> Sequence[str]:
        raise OSError("Name or service not known")

    for get in (fail, _Names([])):
        client = GuardedClient(connections_max=8, allow_loopback=False, extra_ca_file=None, resolver=Resolver(get))
        assert await _post(client, "https://hooks.example.org/") == "name_not_resolved"
        await client.aclose()


async def test_a_name_server_that_hangs_occupies_one_thread_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "LOOKUP_S", 0.2)
    release, asked = threading.Event(), []

    def get(host: bytes) -> Sequence[str]:
        asked.append(host)
        if host == b"hangs.example.org":
            release.wait(_ENOUGH_S)
        return ["10.0.0.1"]

    client = GuardedClient(connections_max=8, allow_loopback=False, extra_ca_file=None, resolver=Resolver(get))
    hanging = [asyncio.create_task(_post(client, f"https://hangs.example.org/{n}")) for n in range(3)]
    await asyncio.sleep(0)
    assert await _post(client, "https://answers.example.org/") == "address_refused"
    assert await asyncio.gather(*hanging) == ["name_not_resolved"] * 3
    assert sorted(asked) == [b"answers.example.org", b"hangs.example.org"]
    release.set()
    await client.aclose()


@contextlib.asynccontextmanager
async def _any_server(behave: Behaviour) -> AsyncIterator[MisbehavingServer]:
    """Run a server that does `behave` on whatever comes first, a request or not."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        await behave(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield MisbehavingServer(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
