"""`POST /v1/events`: a plain ASGI endpoint in front of the framework."""

import binascii
import re
from typing import Final

import structlog
from prometheus_client import Counter

from soundmark.audience.hot.event import parse_body
from soundmark.audience.hot.group import GroupCommit
from soundmark.audience.hot.pending_event import DUPLICATE, RECORDED, Outcome, PendingEvent
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.asgi import Header, Receive, Scope, Send
from soundmark.kit.http.requests.bearer_auth import holds_credential
from soundmark.kit.http.requests.closed_query import query_faults
from soundmark.kit.http.requests.edge import request_id
from soundmark.kit.http.requests.refusals import ClientAddresses, RefusalLimit
from soundmark.kit.http.responses.plain_response import JSON_TYPE, REQUEST_ID, PlainResponses, send_document
from soundmark.kit.http.responses.problems import (
    InternalError,
    MalformedBody,
    MethodNotAllowed,
    PayloadTooLarge,
    Problem,
    RateLimited,
    Unauthenticated,
    UnsupportedMediaType,
)
from soundmark.kit.tracing.context import find_trace_id
from soundmark.wire.audience_event import EVENT_MAX_BYTES, SIGNATURE_HEADER
from soundmark.wire.private.problems import EventQuotaExceeded

PATH: Final = "/v1/events"

_SIGNATURE_NAME: Final = SIGNATURE_HEADER.lower().encode()
_SIGNATURE: Final = re.compile(rb"sha256=([0-9A-Fa-f]{64})")
_JSON: Final = b"application/json"
_STATUS: Final = {RECORDED: 201, DUPLICATE: 200}
_log: Final = structlog.get_logger()
_outcomes: Final = Counter("soundmark_events_total", "Delivered events, by outcome.", ["outcome"])


class Ingest:
    """The endpoint for events: it reads the bytes, has them judged and stored, and writes the outcome.

    Senders are limited by their IP addresses, except a caller with one of `credentials`. That is Core, which forwards
    events and limits their senders itself. Core's deadline does not end the recording of an event: the publisher
    delivers it again and finds it recorded.
    """

    def __init__(
        self,
        entropy: Entropy,
        group: GroupCommit,
        *,
        base_url: str,
        clients: ClientAddresses,
        refused: RefusalLimit,
        credentials: tuple[Secret, ...],
    ) -> None:
        self._entropy: Final = entropy
        self._responses: Final = PlainResponses(base_url)
        self._head: Final = self._responses.render_head(REQUEST_ID, JSON_TYPE)
        self._group: Final = group
        self._clients: Final = clients
        self._refused: Final = refused
        self._credentials: Final = credentials
        self._count: Final = {outcome: _outcomes.labels(outcome) for outcome in _STATUS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        identity = request_id(scope["headers"], self._entropy)
        is_direct = not holds_credential(scope, self._credentials)
        client = self._clients.digest_of(scope) if is_direct else None
        delivery: PendingEvent | None = None
        outcome: Outcome
        try:
            if client is not None:
                await self._refused.check(client)
            body = await _body(scope, receive)
            if body is None:
                return  # The sender has gone.
            unread = parse_body(body)
            faults = query_faults(scope["query_string"], ())
            if faults:
                unread = unread._replace(query_faults=faults)
            delivery = PendingEvent(unread, _signature(scope["headers"]))
            outcome = await self._group.deliver(delivery)
        except Problem as problem:
            outcome = problem
        except Exception as error:  # noqa: BLE001 - the edge of this route answers and logs whatever escapes
            # Without its text and its traceback, which could contain the request.
            trace_id = find_trace_id(scope["headers"], self._entropy)
            _log.error("internal_error", request_id=identity, trace_id=trace_id, error=type(error).__name__)
            outcome = InternalError()
        if isinstance(outcome, str):
            assert delivery is not None, "only a delivered event is recorded"
            answer = b'{"event_id":"%b","status":"%b"}' % (delivery.event.event_id.encode(), outcome.encode())
            self._count[outcome].inc()
            await send_document(scope, send, _STATUS[outcome], self._head % identity.encode(), answer)
            return
        if client is not None:
            ids = {"request_id": identity, "trace_id": find_trace_id(scope["headers"], self._entropy)}
            outcome = await self._note_refused(client, outcome, delivery, ids)
        _outcomes.labels(outcome.code).inc()
        await self._responses.send_problem(send, outcome, identity)

    async def _note_refused(
        self, client: bytes, problem: Problem, delivery: PendingEvent | None, ids: dict[str, str]
    ) -> Problem:
        """Return the answer to a sender whose event was refused: the problem, or RateLimited after too many.

        Only events that were not shown to come from their publisher are counted.
        """
        if isinstance(problem, MalformedBody | Unauthenticated):
            try:
                await self._refused.count(client)
            except RateLimited as limited:
                return limited
        if isinstance(problem, Unauthenticated):
            _log.info("event_refused", **ids, code=problem.code, address=client.hex())
        elif isinstance(problem, EventQuotaExceeded) and delivery is not None:
            caller = delivery.unread.integration_id
            _log.info("event_refused", **ids, code=problem.code, caller=caller, address=client.hex())
        return problem


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """Return the raw body; None if its sender hung up.

    Raises: MethodNotAllowed; UnsupportedMediaType; PayloadTooLarge, before more than an event may have is in memory.
    """
    if scope["method"] != "POST":
        raise MethodNotAllowed(headers={"allow": "POST"})
    media_type, declared = b"", b"0"
    for name, value in scope["headers"]:
        if name == b"content-type":
            media_type = value
        elif name == b"content-length":
            declared = value
    if media_type != _JSON and media_type.partition(b";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaType
    if declared.isdigit() and int(declared) > EVENT_MAX_BYTES:
        raise PayloadTooLarge
    body, is_more = b"", True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > EVENT_MAX_BYTES:
            raise PayloadTooLarge
        is_more = message.get("more_body", False)
    return body


def _signature(headers: list[Header]) -> bytes | None:
    """Return the HMAC that the sender claims; None if there is none, or several, or if it is malformed."""
    found = [value for name, value in headers if name == _SIGNATURE_NAME]
    match = _SIGNATURE.fullmatch(found[0]) if len(found) == 1 else None
    return None if match is None else binascii.unhexlify(match[1])
