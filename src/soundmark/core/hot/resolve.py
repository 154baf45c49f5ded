"""`GET /v1/resolve/{broadcast_token}`: a plain ASGI endpoint in front of the framework."""

import re
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

import structlog
from prometheus_client import Counter

from soundmark.core.custody import Custody
from soundmark.core.domain.signed_facts import SignedFacts
from soundmark.core.hot.address import AddressDigest, AddressReader
from soundmark.core.hot.lookup import Broadcast, BroadcastLookup
from soundmark.core.hot.rate_limit import RateLimit, Verdict
from soundmark.core.hot.verification import PROOF_LIFE, Verifier, answer_body, seal_envelope
from soundmark.core.problems import CodeExpired, CodeUnavailable, RateLimited
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.http import PROBLEM_TYPE, Receive, Scope, Send, problem_document, request_id
from soundmark.kit.problems import FieldError, InternalError, MethodNotAllowed, Problem, ValidationFailed
from soundmark.kit.timestamps import format_timestamp

PATH_PREFIX: Final = "/v1/resolve/"
PROOF_HEADER: Final = b"x-svc-resolution-proof"
PROOF_VALUE: Final = b"ed25519-v1"

_TOKEN: Final = re.compile(r"brd_[A-Za-z0-9_-]{16}", re.ASCII)
# What is looked up for a path that is no token: the question takes its full way and finds nothing, because no token
# has this shape.
_NO_TOKEN: Final = "brd_no_token"  # noqa: S105 - no token
_SHARED_LIFE: Final = timedelta(seconds=1)  # Contract, section 3: an envelope is shared for at most one second.
_SHARED_MAX_BYTES: Final = 8 * 1024 * 1024

Headers: TypeAlias = list[tuple[bytes, bytes]]

_log: Final = structlog.get_logger()
_answers: Final = Counter("soundmark_resolutions_total", "Answered resolutions, by outcome.", ["outcome"])


class Shared(NamedTuple):
    """An answer with its envelope, for everybody who hears the same token within a second."""

    broadcast: Broadcast
    expires_at: str
    body: bytes
    made_at: datetime
    made_at_s: float


class Question(NamedTuple):
    """What a request asks."""

    token: str
    wants_proof: bool


class Resolve:
    """Answers receivers. Revocation and expiry are judged for each question; an unverified intent is never answered."""

    def __init__(  # noqa: PLR0913 - wired once, in app
        self,
        *,
        base_url: str,
        clock: Clock,
        entropy: Entropy,
        custody: Custody,
        lookup: BroadcastLookup,
        limit: RateLimit,
        addresses: AddressReader,
        digests: AddressDigest,
        policy: bytes,
    ) -> None:
        self._base_url: Final = base_url
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._custody: Final = custody
        self._lookup: Final = lookup
        self._limit: Final = limit
        self._addresses: Final = addresses
        self._digests: Final = digests
        self._policy: Final = policy
        self._verifier: Final = Verifier(custody)
        self._shared: dict[str, Shared] = {}
        self._shared_bytes = 0
        self._count: Final = {
            outcome: _answers.labels(outcome)
            for outcome in ("verified", "code_unavailable", "code_expired", "rate_limited", "refused", "failed")
        }

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        headers = scope["headers"]
        identity = request_id(headers, self._entropy)
        if scope["method"] != "GET":
            await self._send_problem(send, MethodNotAllowed(headers={"allow": "GET"}), identity, None)
            return
        verdict = await self._count_request(scope, headers)
        try:
            body = await self._answer(scope, headers, verdict)
        except Problem as problem:
            await self._send_problem(send, problem, identity, verdict)
        except Exception:  # noqa: BLE001 - the edge of this route: whatever escapes is answered and logged
            _log.exception("internal_error", request_id=identity)
            await self._send_problem(send, InternalError(), identity, verdict)
        else:
            self._count["verified"].inc()
            await _send(send, 200, self._headers(b"application/json", body, identity, verdict), body)

    async def _count_request(self, scope: Scope, headers: Headers) -> Verdict:
        peer = scope["client"][0] if scope.get("client") else None
        forwarded = (value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for")
        subject = self._addresses.subject(peer, forwarded)
        return await self._limit.hit(self._digests.of(subject, self._clock.now()))

    async def _answer(self, scope: Scope, headers: Headers, verdict: Verdict) -> bytes:
        if not verdict.is_allowed:
            raise RateLimited(headers={"retry-after": str(verdict.reset_s)})
        question = _read(scope["path"], headers)
        broadcast = await self._lookup.find(question.token)
        if broadcast is None:
            raise CodeUnavailable
        now = self._clock.now()
        issued_at = format_timestamp(now)
        shared = self._shared.get(question.token) if question.wants_proof else None
        if shared is not None and self._may_share(shared, broadcast, now):
            if issued_at >= shared.expires_at:
                raise CodeExpired
            return shared.body
        facts = await self._verifier.facts(broadcast)
        if facts is None:
            raise CodeUnavailable
        # Timestamps of this shape sort like the moments they name.
        if issued_at >= facts.expires_at:
            raise CodeExpired
        if not question.wants_proof:
            return answer_body(facts, None)
        envelope = seal_envelope(
            facts, self._custody.keyring.active, issued_at=issued_at, expires_at=format_timestamp(now + PROOF_LIFE)
        )
        body = answer_body(facts, envelope)
        self._share(broadcast, facts, body, now)
        return body

    def _may_share(self, shared: Shared, broadcast: Broadcast, now: datetime) -> bool:
        """Whether an answer made less than a second ago answers this question too.

        By both clocks: one that jumps must not make an envelope old or not yet valid.
        """
        return (
            shared.broadcast == broadcast
            and shared.made_at <= now < shared.made_at + _SHARED_LIFE
            and self._clock.monotonic_s() - shared.made_at_s < _SHARED_LIFE.total_seconds()
        )

    def _share(self, broadcast: Broadcast, facts: SignedFacts, body: bytes, now: datetime) -> None:
        if self._shared_bytes > _SHARED_MAX_BYTES:
            self._shared.clear()
            self._shared_bytes = 0
        self._shared[broadcast.token] = Shared(broadcast, facts.expires_at, body, now, self._clock.monotonic_s())
        self._shared_bytes += len(body) + len(broadcast.payload)

    async def _send_problem(self, send: Send, problem: Problem, identity: str, verdict: Verdict | None) -> None:
        outcome = problem.code if problem.code in self._count else "failed"
        self._count["refused" if isinstance(problem, ValidationFailed | MethodNotAllowed) else outcome].inc()
        body = problem_document(problem, base_url=self._base_url, request_id=identity)
        headers = self._headers(PROBLEM_TYPE.encode(), body, identity, verdict)
        headers += [(name.encode(), value.encode()) for name, value in problem.headers.items()]
        await _send(send, int(problem.kind), headers, body)

    def _headers(self, media_type: bytes, body: bytes, identity: str, verdict: Verdict | None) -> Headers:
        headers = [
            (b"content-type", media_type),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-request-id", identity.encode()),
        ]
        if verdict is not None:
            headers.append((b"ratelimit-policy", self._policy))
            headers.append((b"ratelimit", b'"resolve";r=%d;t=%d' % (verdict.remaining, verdict.reset_s)))
        return headers


async def _send(send: Send, status: int, headers: Headers, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _read(path: str, headers: Headers) -> Question:
    """What the request asks; the header is judged before the token is looked up.

    Raises: ValidationFailed.
    """
    wants_proof = False
    for name, value in headers:
        if name == PROOF_HEADER:
            if value != PROOF_VALUE or wants_proof:
                message = f"must be {PROOF_VALUE.decode()}, once"
                raise ValidationFailed(errors=(FieldError("header", "/X-Svc-Resolution-Proof", message),))
            wants_proof = True
    token = path[len(PATH_PREFIX) :]
    return Question(token if _TOKEN.fullmatch(token) else _NO_TOKEN, wants_proof)
