"""`GET /v1/resolve/{broadcast_token}`: a plain ASGI endpoint in front of the framework."""

import re
from typing import Final

import structlog
from prometheus_client import Counter

from soundmark.core.hot.answers import Outcome, Question
from soundmark.core.hot.lookup import BroadcastLookup
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.http.asgi import Header, Receive, Scope, Send
from soundmark.kit.http.limits.local import LimitState, RateLimit
from soundmark.kit.http.requests.client_address import AddressDigest, AddressReader
from soundmark.kit.http.requests.closed_query import query_faults
from soundmark.kit.http.requests.cross_origin import READABLE_HEADERS, Preflight, is_preflight
from soundmark.kit.http.requests.edge import request_id
from soundmark.kit.http.responses.plain_response import JSON_TYPE, REQUEST_ID, PlainResponses, send_document
from soundmark.kit.http.responses.problems import (
    FieldError,
    InternalError,
    MethodNotAllowed,
    Problem,
    RateLimited,
    ValidationFailed,
)
from soundmark.kit.tracing.context import find_trace_id

PATH_PREFIX: Final = "/v1/resolve/"
ROUTE: Final = PATH_PREFIX + "{broadcast_token}"
PROOF_HEADER_NAME: Final = "X-Svc-Resolution-Proof"
PROOF_HEADER: Final = PROOF_HEADER_NAME.lower().encode()
PROOF_VALUE: Final = b"ed25519-v1"

_TOKEN: Final = re.compile(r"brd_[A-Za-z0-9_-]{16}", re.ASCII)
# Looked up in place of a malformed token, so that such a request takes the same path as any other. No real token has
# this shape.
_NO_TOKEN: Final = "brd_no_token"  # noqa: S105 - not a secret
_LIMIT_STATE: Final = b'"resolve";r=%d;t=%d'
_log: Final = structlog.get_logger()
_answers: Final = Counter("soundmark_resolutions_total", "Resolutions, by outcome.", ["outcome"])


class Resolve:
    """Answers receivers: counts a request against the rate limit, looks the token up, and writes the response."""

    def __init__(
        self,
        *,
        base_url: str,
        clock: Clock,
        entropy: Entropy,
        lookup: BroadcastLookup,
        limit: RateLimit,
        addresses: AddressReader,
        digests: AddressDigest,
        policy: bytes,
    ) -> None:
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._lookup: Final = lookup
        self._limit: Final = limit
        self._addresses: Final = addresses
        self._digests: Final = digests
        self._responses: Final = PlainResponses(base_url, *READABLE_HEADERS)
        self._policy: Final = (b"ratelimit-policy", policy)
        # The head of a successful response: a template for the request id and the state of the rate limit.
        self._head: Final = self._responses.render_head(
            JSON_TYPE, self._policy, REQUEST_ID, (b"ratelimit", _LIMIT_STATE)
        )
        self._preflight: Final = Preflight(PROOF_HEADER_NAME, entropy)
        self._verified: Final = _answers.labels("verified")
        self._count: Final = {
            outcome: _answers.labels(outcome)
            for outcome in ("code_unavailable", "code_expired", "rate_limited", "refused", "failed")
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS" and is_preflight(scope):
            # Not counted: browsers send one before each resolution, and it costs no query.
            await self._preflight(scope, receive, send)
            return
        identity = request_id(scope["headers"], self._entropy)
        verdict: LimitState | None = None
        head = b""
        outcome: Outcome
        try:
            client = scope.get("client")
            subject = self._addresses.subject(client[0] if client else None, scope["headers"])
            digest = self._digests.of(subject, self._clock.unix_s())
            verdict = await self._limit.hit(digest)
            if verdict.is_first_refused:
                trace_id = find_trace_id(scope["headers"], self._entropy)
                _log.warning("resolutions_limited", address=digest.hex(), for_s=verdict.reset_s, trace_id=trace_id)
            # The head is made before the answer is known, so that all responses of a batch can be sent without delay.
            head = self._head % (identity.encode(), verdict.remaining, verdict.reset_s)
            outcome = await self._lookup.ask(_question(scope, verdict))
        except Problem as problem:
            outcome = problem
        except Exception:  # noqa: BLE001 - the edge of this route: every error is logged and gets a response
            trace_id = find_trace_id(scope["headers"], self._entropy)
            _log.exception("internal_error", request_id=identity, trace_id=trace_id)
            outcome = InternalError()
        if not isinstance(outcome, bytes):
            await self._send_problem(send, outcome, identity, verdict)
            return
        self._verified.inc()
        await send_document(scope, send, 200, head, outcome)

    async def _send_problem(self, send: Send, problem: Problem, identity: str, verdict: LimitState | None) -> None:
        outcome = problem.code if problem.code in self._count else "failed"
        self._count["refused" if isinstance(problem, ValidationFailed | MethodNotAllowed) else outcome].inc()
        limited: tuple[Header, ...] = ()
        if verdict is not None:
            limited = (self._policy, (b"ratelimit", _LIMIT_STATE % (verdict.remaining, verdict.reset_s)))
        await self._responses.send_problem(send, problem, identity, *limited)


def _question(scope: Scope, verdict: LimitState) -> Question:
    """Return the question of a request that was counted.

    Raises: RateLimited; MethodNotAllowed; ValidationFailed.
    """
    if not verdict.is_allowed:
        raise RateLimited(headers={"retry-after": str(verdict.reset_s)})
    if scope["method"] != "GET":
        raise MethodNotAllowed(headers={"allow": "GET"})
    if scope["query_string"]:
        _refuse_parameters(scope["query_string"])
    return _read(scope["path"], scope["headers"])


def _refuse_parameters(query_string: bytes) -> None:
    """Reject every query parameter, because this route has none.

    Raises: ValidationFailed.
    """
    faults = query_faults(query_string, ())
    if faults:
        raise ValidationFailed(errors=faults)


def _read(path: str, headers: list[Header]) -> Question:
    """Return the question of a request. The header is checked before the token is looked up.

    Raises: ValidationFailed.
    """
    wants_proof = False
    for name, value in headers:
        if name == PROOF_HEADER:
            if value != PROOF_VALUE or wants_proof:
                message = f"must be {PROOF_VALUE.decode()}, once"
                raise ValidationFailed(errors=(FieldError("header", f"/{PROOF_HEADER_NAME}", message),))
            wants_proof = True
    token = path[len(PATH_PREFIX) :]
    return Question(token if _TOKEN.fullmatch(token) else _NO_TOKEN, wants_proof)
