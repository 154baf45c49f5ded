"""Attempts to deliver an event, what follows from each, and the signature that it carries."""

import base64
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from soundmark.core.domain.tenancy.scope import ActorType
from soundmark.core.domain.webhooks.delivery import RETRY_AFTER, DeliveryStatus
from soundmark.core.domain.webhooks.endpoint import SECRET_PREFIX, DisabledReason
from soundmark.core.domain.webhooks.event import WebhookEvent
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.secret import Secret

TIMEOUT_S: Final = 15.0  # Contract, section 9.
# A delivery is nobody else's for this long after it was claimed. An attempt begins only if it ends before.
LEASE: Final = timedelta(seconds=30)
FAILING_FOR: Final = timedelta(days=5)  # Contract, section 9: after this long without a success, we stop.
# What an attempt may fail with besides the words of `kit.http.outbound.guarded_client`.
BAD_STATUS: Final = "status_not_successful"
ENDPOINT_DISABLED: Final = "endpoint_disabled"
INTERNAL_ERROR: Final = "internal_error"

_GONE: Final = 410
_JITTER: Final = 0.1  # Contract, section 9: of each pause, in both directions.
_JITTER_BYTES: Final = 4
_CLOCKS_DIFFER: Final = timedelta(minutes=1)
# By number of attempts: how far ahead a delivery's next attempt may be. Only a clock that was set back exceeds it.
AHEAD_MAX: Final = tuple(max(pause * (1 + _JITTER), LEASE) + _CLOCKS_DIFFER for pause in (timedelta(0), *RETRY_AFTER))


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that is ours until `lease_until`, with its event, and its endpoint as it is now."""

    organization_id: str
    id: str
    endpoint_id: str
    attempts: int
    lease_until: datetime
    event_id: str
    project_id: str | None
    event_type: str
    actor_type: ActorType
    actor_id: str
    data: str
    event_created_at: datetime
    url: str
    sealed_secret: bytes = field(repr=False)
    sealed_earlier_secret: bytes | None = field(repr=False)
    earlier_secret_until: datetime | None
    failing_since: datetime | None
    traceparent: str | None = None  # Of the act.

    @property
    def event(self) -> WebhookEvent:
        """The event that is delivered."""
        return WebhookEvent(
            organization_id=self.organization_id,
            id=self.event_id,
            project_id=self.project_id,
            type=self.event_type,
            actor_type=self.actor_type,
            actor_id=self.actor_id,
            data=self.data,
            created_at=self.event_created_at,
        )


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """What follows from an attempt: the delivery's new state, and what it says about the endpoint."""

    delivery: ClaimedDelivery
    status: DeliveryStatus
    status_code: int | None
    error: str | None
    next_attempt_at: datetime | None
    disables: DisabledReason | None

    @property
    def attempts(self) -> int:
        """How many attempts the delivery has had."""
        return self.delivery.attempts + 1

    @property
    def is_success(self) -> bool:
        """Whether the endpoint took the message."""
        return self.status == "delivered"


def is_success(status_code: int) -> bool:
    """Return whether a response with this status takes the message."""
    return 200 <= status_code < 300  # noqa: PLR2004 - contract, section 9: 2xx


def conclude(delivery: ClaimedDelivery, response: int | str, *, now: datetime, entropy: Entropy) -> AttemptOutcome:
    """Return what follows from an attempt with this response: a status, or why there was none.

    Source: contract, section 9, "Delivery".
    """
    code, error = (response, None) if isinstance(response, int) else (None, response)
    if code is not None and is_success(code):
        return AttemptOutcome(delivery, "delivered", code, None, None, None)
    error = error or BAD_STATUS
    if code == _GONE:
        return AttemptOutcome(delivery, "failed", code, error, None, "gone")
    since = delivery.failing_since
    disables: DisabledReason | None = "failing" if since is not None and now - since >= FAILING_FOR else None
    if delivery.attempts >= len(RETRY_AFTER):
        return AttemptOutcome(delivery, "failed", code, error, None, disables)
    next_attempt_at = now + _vary(RETRY_AFTER[delivery.attempts], entropy)
    return AttemptOutcome(delivery, "pending", code, error, next_attempt_at, disables)


def sign(secrets: Sequence[Secret], message_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the header `webhook-signature`: one signature by each secret, separated by spaces.

    Source: Standard Webhooks 1.1.0, "Signature scheme".
    """
    content = f"{message_id}.{timestamp_s}.".encode() + body
    return " ".join(f"v1,{_sign(secret, content)}" for secret in secrets)


def _sign(secret: Secret, content: bytes) -> str:
    key = base64.b64decode(secret.reveal().removeprefix(SECRET_PREFIX))
    return base64.b64encode(hmac.digest(key, content, "sha256")).decode()


def _vary(pause: timedelta, entropy: Entropy) -> timedelta:
    """Return `pause` or up to a tenth less or more, so that many deliveries do not return at one moment."""
    share = int.from_bytes(entropy.take(_JITTER_BYTES), "big") / (256**_JITTER_BYTES - 1)
    return pause * (1 - _JITTER + 2 * _JITTER * share)
