"""The trace of a request at the edge: its line in the log, and what is called from within."""

from typing import Any

import httpx2
import pytest
import structlog
from starlette.responses import JSONResponse

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.asgi import Receive, Scope, Send
from soundmark.kit.http.requests.edge import HttpEdge
from soundmark.kit.tracing.context import add_trace_id, outgoing_headers

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT_ID}-03"
ENTROPY = SystemEntropy()


async def call(headers: list[tuple[str, str]], *, is_trusted: bool) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the headers with which the app would call another component, and the request's line in the log."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await JSONResponse(outgoing_headers())(scope, receive, send)

    edge = HttpEdge(app, "http://edge.test", ENTROPY, is_trusted=lambda _scope: is_trusted)
    with structlog.testing.capture_logs(processors=[add_trace_id]) as logged:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(edge), base_url="http://edge.test") as client:
            answer = await client.get("/v1/things", headers=headers)
    (line,) = [entry for entry in logged if entry["event"] == "request"]
    assert "trace_id" not in structlog.contextvars.get_contextvars()
    assert outgoing_headers() == {}, "the next request is in another trace"
    return answer.json(), line


async def test_the_callers_trace_goes_on() -> None:
    headers = [("traceparent", TRACEPARENT), ("tracestate", "a=1"), ("tracestate", "b=2"), ("x-request-id", "req_1")]
    passed_on, line = await call(headers, is_trusted=True)
    assert passed_on == {"traceparent": TRACEPARENT, "tracestate": "a=1,b=2"}
    assert (line["trace_id"], line["request_id"]) == (TRACE_ID, "req_1")


async def test_a_stranger_chooses_the_trace_and_not_that_it_is_sampled() -> None:
    passed_on, line = await call([("traceparent", TRACEPARENT), ("tracestate", "a=1")], is_trusted=False)
    version, trace_id, parent_id, flags = passed_on["traceparent"].split("-")
    assert (version, trace_id, flags) == ("00", TRACE_ID, "02")
    assert parent_id != PARENT_ID, "whoever changes the flag is the parent"
    assert passed_on["tracestate"] == "a=1"
    assert line["trace_id"] == TRACE_ID


@pytest.mark.parametrize("traceparents", [[], ["00-" + "0" * 32 + TRACEPARENT[35:]], [TRACEPARENT, TRACEPARENT]])
async def test_without_a_wellformed_trace_a_new_one_begins(traceparents: list[str]) -> None:
    headers = [*(("traceparent", each) for each in traceparents), ("tracestate", "a=1")]
    passed_on, line = await call(headers, is_trusted=True)
    again, other = await call(headers, is_trusted=True)
    assert passed_on.keys() == {"traceparent"}
    assert passed_on["traceparent"].split("-")[1] == line["trace_id"] != TRACE_ID
    assert again["traceparent"].split("-")[1] == other["trace_id"] != line["trace_id"]
