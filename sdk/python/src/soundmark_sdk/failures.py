"""The failures of resolving and of delivering, each with a closed set of reasons."""

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
    "organization_suspended",
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

# An event may be delivered any number of times, so a delivery that was lost on the way is repeated as well.
RETRYABLE_DELIVERY_REASONS: Final[frozenset[DeliveryReason]] = frozenset(
    {"rate_limited", "temporarily_unavailable", "network"},
)


class Failure(Exception):
    """The base of all failures of a request. `retry_after_s` is the pause that the server asked for, or None."""

    retry_after_s: float | None = None


class ReceiverFailure(Failure):
    """There is no verified intent, for one of six reasons.

    `explanation` is an English sentence of this package for a developer's log; it may name the address of the service.
    Nothing here holds text that the server sent. `retry_after_s` is the pause that the server asked for, in seconds
    from its answer, or None. `is_unreachable` is true if no complete answer arrived, or one of 502, 503 and 504: only
    then do offline packs answer.

    Source: API v1, "Errors", "Resolution failures"; details, point A23.
    """

    def __init__(
        self, reason: Reason, explanation: str, *, retry_after_s: float | None = None, is_unreachable: bool = False
    ) -> None:
        super().__init__(f"{reason}: {explanation}")
        self.reason: Final[Reason] = reason
        self.explanation: Final = explanation
        self.is_unreachable: Final = is_unreachable
        self.retry_after_s = retry_after_s

    @property
    def retryable(self) -> bool:
        """Whether resolving again later can help without any other change."""
        return self.reason in RETRYABLE_REASONS


class Unverifiable(ReceiverFailure):
    """The received bytes prove nothing, so they yield no intent."""

    def __init__(self, explanation: str) -> None:
        super().__init__("unverifiable", explanation)


class KeyUnknown(Unverifiable):
    """The key set lacks the signing key; a newer set may have it."""

    def __init__(self) -> None:
        super().__init__("The signing key is not among the published keys.")


class DeliveryFailure(Failure):
    """A measurement was not delivered, or its answer was lost, for one of thirteen reasons.

    Like `ReceiverFailure` it holds no text that a server sent, and nothing of the event or of a credential. When it is
    `retryable`, deliver the same bytes again later; if the event had arrived, the answer is then `duplicate`.
    """

    def __init__(self, reason: DeliveryReason, explanation: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{reason}: {explanation}")
        self.reason: Final[DeliveryReason] = reason
        self.explanation: Final = explanation
        self.retry_after_s = retry_after_s

    @property
    def retryable(self) -> bool:
        """Whether delivering the same bytes again later can help without any other change."""
        return self.reason in RETRYABLE_DELIVERY_REASONS
