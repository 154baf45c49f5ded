"""The messages that the endpoint of resolutions sends: every header and byte, in both shapes of a response."""

import asyncio
from typing import Any, Final

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from support.processes.fake_clock import FakeClock

from soundmark.core.hot.answers import Outcome, Question
from soundmark.core.hot.resolve import Resolve
from soundmark.core.problems import CodeExpired, CodeUnavailable
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.limits.local import LimitState
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.responses.plain_response import WHOLE_RESPONSE

TOKEN: Final = "brd_" + "a" * 16
IDENTITY: Final = "req_" + "a" * 32
BODY: Final = b'{"xr_id":"xr_1"}'
COMMON: Final = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"RateLimit, RateLimit-Policy, Retry-After, X-Request-Id"),
]
LIMITED: Final = [(b"ratelimit-policy", b'"resolve";q=9;w=60'), (b"ratelimit", b'"resolve";r=8;t=7')]
PROOF: Final = (b"x-svc-resolution-proof", b"ed25519-v1")


class HeldLookup:
    """Answers every question alike."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.asked: list[Question] = []

    def ask(self, question: Question) -> asyncio.Future[Outcome]:
        self.asked.append(question)
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        future.set_result(self.outcome)
        return future


class HeldLimit:
    """Counts nothing, and judges every request alike."""

    def __init__(self, *, is_allowed: bool = True) -> None:
        self.state = LimitState(is_allowed, 8, 7)
        self.subjects: list[bytes] = []

    async def hit(self, subject: bytes) -> LimitState:
        self.subjects.append(subject)
        return self.state


async def send_to(lookup: HeldLookup, limit: HeldLimit | None = None, **changes: Any) -> list[Any]:
    """Return the messages with which the endpoint responds to a request."""
    digests = AddressDigest(SystemEntropy())
    resolve = Resolve(
        base_url="http://core.test",
        clock=FakeClock(),
        entropy=SystemEntropy(),
        lookup=lookup,  # type: ignore[arg-type]  # it has the method that is called
        limit=limit or HeldLimit(),  # type: ignore[arg-type]  # it has the method that is called
        addresses=AddressReader(()),
        digests=digests,
        policy=b'"resolve";q=9;w=60',
    )
    headers = [(b"x-request-id", IDENTITY.encode()), *changes.pop("headers", ())]
    scope = {
        "method": "GET",
        "path": f"/v1/resolve/{TOKEN}",
        "query_string": b"",
        "client": ("192.0.2.7", 1234),
        "headers": headers,
        **changes,
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await resolve(scope, None, send)  # type: ignore[arg-type]  # it reads no body
    if limit is not None:
        assert limit.subjects == [digests.of("192.0.2.7", FakeClock().unix_s())]
    return sent


def identity_in(headers: list[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    (found,) = [header for header in headers if header[0] == b"x-request-id"]
    return found


async def test_an_answer_has_every_header_and_its_body() -> None:
    lookup = HeldLookup(BODY)
    start, body = await send_to(lookup, HeldLimit())
    identity = identity_in(start["headers"])
    assert start == {
        "type": "http.response.start",
        "status": 200,
        "headers": [
            *COMMON,
            (b"content-type", b"application/json"),
            LIMITED[0],
            identity,
            LIMITED[1],
            (b"content-length", b"%d" % len(BODY)),
        ],
    }
    assert body == {"type": "http.response.body", "body": BODY}
    assert lookup.asked == [Question(TOKEN, wants_proof=False)]


async def test_a_whole_response_has_the_same_headers_in_bytes() -> None:
    (sent,) = await send_to(HeldLookup(BODY), extensions={WHOLE_RESPONSE: {}})
    lines = sent.pop("head").split(b"\r\n")
    assert sent == {"type": WHOLE_RESPONSE, "status": 200, "body": BODY}
    assert lines.pop() == b"", "the head ends with a line's end"
    headers = [tuple(line.split(b": ", 1)) for line in lines]
    assert sorted(headers) == sorted(
        [
            *COMMON,
            identity_in(headers),  # type: ignore[arg-type]  # pairs
            *LIMITED,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(BODY)),
        ]
    )


async def test_a_problem_is_sent_as_one_and_counted(subtests: pytest.Subtests) -> None:
    for changes, outcome, status, counted in [
        ({}, CodeUnavailable(), 404, "code_unavailable"),
        ({}, CodeExpired(), 410, "code_expired"),
        ({"method": "POST"}, BODY, 405, "refused"),
        ({"query_string": b"a=1"}, BODY, 422, "refused"),
        ({"headers": [(PROOF[0], b"ed25519-v2")]}, BODY, 422, "refused"),
        ({"headers": [PROOF, PROOF]}, BODY, 422, "refused"),
        ({"client": 7}, BODY, 500, "failed"),
    ]:
        with subtests.test(changes=changes, outcome=outcome, status=status, counted=counted):
            labels = {"outcome": counted}
            before = REGISTRY.get_sample_value("soundmark_resolutions_total", labels) or 0
            start, body = await send_to(HeldLookup(outcome), **changes)
            limited = [] if status == 500 else LIMITED
            allow = [(b"allow", b"GET")] if status == 405 else []
            assert (start["type"], start["status"], body["type"]) == (
                "http.response.start",
                status,
                "http.response.body",
            )
            assert start["headers"] == [
                *COMMON,
                identity_in(start["headers"]),
                *limited,
                (b"content-type", b"application/problem+json"),
                *allow,
                (b"content-length", b"%d" % len(body["body"])),
            ]
            assert REGISTRY.get_sample_value("soundmark_resolutions_total", labels) == before + 1


async def test_what_is_logged_of_a_resolution_has_the_id_of_its_trace() -> None:
    """Of the request's, or of a new one: this path keeps no trace, and reads the header for the line alone."""
    headers = [(b"traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")]
    with capture_logs() as logged:
        await send_to(HeldLookup(BODY), client=7, headers=headers)
        await send_to(HeldLookup(BODY), client=7, headers=headers * 2)
    named, begun = (line["trace_id"] for line in logged if line["event"] == "internal_error")
    assert named == "4bf92f3577b34da6a3ce929d0e0e4736" != begun
    assert len(begun) == 32


async def test_a_request_beyond_the_limit_says_when_to_try_again() -> None:
    lookup = HeldLookup(BODY)
    before = REGISTRY.get_sample_value("soundmark_resolutions_total", {"outcome": "rate_limited"}) or 0
    start, _ = await send_to(lookup, HeldLimit(is_allowed=False))
    assert (start["status"], lookup.asked) == (429, [])
    assert REGISTRY.get_sample_value("soundmark_resolutions_total", {"outcome": "rate_limited"}) == before + 1
    assert (b"retry-after", b"7") in start["headers"]


async def test_the_header_asks_for_a_proof_and_a_malformed_token_is_asked_about_too() -> None:
    lookup = HeldLookup(BODY)
    before = REGISTRY.get_sample_value("soundmark_resolutions_total", {"outcome": "verified"}) or 0
    await send_to(lookup, headers=[PROOF])
    await send_to(lookup, path="/v1/resolve/" + TOKEN + "a")
    assert lookup.asked == [Question(TOKEN, wants_proof=True), Question("brd_no_token", wants_proof=False)]
    assert REGISTRY.get_sample_value("soundmark_resolutions_total", {"outcome": "verified"}) == before + 2
