"""Requests written by hand, which a client library would tidy up."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPResponse
from urllib.parse import urlsplit

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"]


@dataclass(frozen=True)
class RawAnswer:
    """A response; its header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def send_raw(url: str, target: bytes, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> RawAnswer:
    """Send one request with exactly this target on its own connection."""
    where = urlsplit(url)
    lines = {"Host": where.netloc, "Connection": "close", **(headers or {})}
    head = b"".join(f"{name}: {value}\r\n".encode() for name, value in lines.items())
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=30) as connection:
        connection.sendall(method.encode() + b" " + target + b" HTTP/1.1\r\n" + head + b"\r\n")
        response = HTTPResponse(connection, method=method)
        response.begin()
        return RawAnswer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )
