"""Requests to servers that an operator configured, whose names may lead anywhere."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from soundmark.kit.http.outbound import client as outbound
from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, RequestLost


@dataclass
class Listener:
    """A server that keeps what each connection sent, and answers."""

    url: str = ""
    received: list[bytes] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(await reader.read(4096))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        writer.close()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    """A server that notes what it receives."""
    listener = Listener()
    async with await asyncio.start_server(listener.serve, "127.0.0.1", 0) as server:
        listener.url = f"http://localhost:{server.sockets[0].getsockname()[1]}/"
        yield listener


@pytest.fixture
async def client() -> AsyncIterator[OutboundClient]:
    """The client under test."""
    client = OutboundClient(bytes_max=100, extra_ca_file=None)
    yield client
    await client.aclose()


async def test_nothing_is_sent_to_a_refused_address_that_a_name_leads_to(
    listener: Listener, client: OutboundClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A credential would be in the first bytes. The name is `localhost`, and stands for one that nobody can set up."""
    monkeypatch.setattr(outbound, "is_refused_address", lambda address: address == ip_address("127.0.0.1"))
    request = OutboundRequest("GET", listener.url, {"dolapikey": "a-credential"})
    with pytest.raises(RequestLost) as lost:
        await client.send(request, timeout_s=10)
    assert lost.value.reason == "address_refused"
    async with asyncio.timeout(10):
        while not listener.received:  # noqa: ASYNC110 - until the server has seen the end of the connection
            await asyncio.sleep(0.005)
    assert listener.received == [b""]


async def test_this_machine_is_not_refused(listener: Listener, client: OutboundClient) -> None:
    response = await client.send(OutboundRequest("GET", listener.url, {}), timeout_s=10)
    assert (response.status, response.body) == (200, b"{}")
