"""The closed set of ways in which resolving can fail."""

from typing import Final, Literal, TypeAlias

Reason: TypeAlias = Literal[
    "code_unavailable",
    "expired",
    "rate_limited",
    "temporarily_unavailable",
    "unverifiable",
    "network",
]

DeliveryReason: TypeAlias = Literal[
    "unauthenticated",
    "event_invalid",
    "proof_invalid",
    "proof_replayed",
    "event_conflict",
    "integration_revoked",
    "entitlement_required",
    "quota_exceeded",
    "rate_limited",
    "temporarily_unavailable",
    "network",
    "unintelligible",
]

RETRYABLE_REASONS: Final[frozenset[Reason]] = frozenset({"rate_limited", "temporarily_unavailable"})

# An event may be delivered any number of times, so what was lost on the way is sent again as well.
RETRYABLE_DELIVERY_REASONS: Final[frozenset[DeliveryReason]] = frozenset(
    {"rate_limited", "temporarily_unavailable", "network"},
)


class ReceiverFailure(Exception):  # noqa: N818 - the wire documents call these outcomes failures, and so do callers
    """No verified intent can be given, for one of six reasons.

    `explanation` is an English sentence of this package for a developer's log; it may name the address that was asked.
    It never holds a word that the server sent, and neither does anything else here. `retry_after_s` is how long the
    server asked to be left alone (seconds from when it answered), or None when it did not say.

    Source: API v1, "Errors", "Resolution failures".
    """

    def __init__(self, reason: Reason, explanation: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{reason}: {explanation}")
        self.reason: Final[Reason] = reason
        self.explanation: Final = explanation
        self.retry_after_s: Final = retry_after_s

    @property
    def retryable(self) -> bool:
        """Whether asking again later can help without anything else changing."""
        return self.reason in RETRYABLE_REASONS


class Unverifiable(ReceiverFailure):
    """What was received proves nothing, so no intent comes out of it."""

    def __init__(self, explanation: str) -> None:
        super().__init__("unverifiable", explanation)


class KeyUnknown(Unverifiable):
    """The signing key's id is not in the key set at hand; a newer set may have it."""

    def __init__(self) -> None:
        super().__init__("The signing key is not among the published keys.")


class DeliveryFailure(Exception):  # noqa: N818 - see ReceiverFailure
    """A measurement was not delivered, or nobody knows whether it was, for one of twelve reasons.

    Like `ReceiverFailure` it holds no word that a server sent, and nothing of the event or of a credential. Deliver the
    same bytes again later where it is `retryable`; an event that had arrived is then answered `duplicate`.
    """

    def __init__(self, reason: DeliveryReason, explanation: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{reason}: {explanation}")
        self.reason: Final[DeliveryReason] = reason
        self.explanation: Final = explanation
        self.retry_after_s: Final = retry_after_s

    @property
    def retryable(self) -> bool:
        """Whether delivering the same bytes again later can help without anything else changing."""
        return self.reason in RETRYABLE_DELIVERY_REASONS
