"""The level at which a request is logged: at level warning, only requests that went wrong show up."""

import httpx2
import pytest
import structlog
from starlette.requests import Request
from starlette.responses import Response

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.asgi import Receive, Scope, Send
from soundmark.kit.http.requests.edge import HttpEdge


async def levels_of(path: str, status: int) -> list[str]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert Request(scope).url.path == path
        await Response(status_code=status)(scope, receive, send)

    transport = httpx2.ASGITransport(HttpEdge(app, "http://edge.test", SystemEntropy()))
    with structlog.testing.capture_logs() as logged:
        async with httpx2.AsyncClient(transport=transport, base_url="http://edge.test") as client:
            await client.get(path)
    return [entry["log_level"] for entry in logged if entry["event"] == "request"]


async def test_a_problem_has_a_higher_level_than_a_success(subtests: pytest.Subtests) -> None:
    for status, level in {200: "info", 499: "info", 404: "warning", 429: "warning", 503: "error"}.items():
        with subtests.test(status=status, level=level):
            assert await levels_of("/v1/codes", status) == [level]


async def test_a_probe_never_has_a_high_level(subtests: pytest.Subtests) -> None:
    """During startup each component is probed twenty times a second, and answers 503."""
    for path in ["/healthz", "/readyz"]:
        for status in [200, 503]:
            with subtests.test(path=path, status=status):
                assert await levels_of(path, status) == ["debug"]
