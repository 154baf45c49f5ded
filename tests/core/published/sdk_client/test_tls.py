"""Whom the SDK trusts: over https the authorities of the machine, over plain http none."""

import ssl
from pathlib import Path

import httpx2
import pytest
from soundmark_sdk.http_exchange import new_transport
from support.outside.misbehaving_server import answer
from support.outside.private_authority import make_authority, tls_server


async def status_of(transport: httpx2.AsyncHTTPTransport, url: str) -> int:
    async with transport:
        return (await transport.handle_async_request(httpx2.Request("GET", url))).status_code


@pytest.mark.parametrize("scheme", ["https", "HTTPS"])
async def test_over_https_the_authorities_of_the_machine_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    authority = make_authority(tmp_path, "127.0.0.1")
    async with tls_server(authority, answer()) as server:
        with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
            await status_of(new_transport(server.url.replace("https", scheme)), server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
        assert await status_of(new_transport(server.url.replace("https", scheme)), server.url) == 200


async def test_a_transport_for_plain_http_reads_no_authorities_and_trusts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = make_authority(tmp_path, "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
    async with tls_server(authority, answer()) as server:
        monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", None)
        transport = new_transport("HTTP://127.0.0.1")
        with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
            await status_of(transport, server.url)
