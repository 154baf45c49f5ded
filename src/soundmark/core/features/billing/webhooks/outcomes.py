"""Counting what became of notifications."""

from typing import Final, Literal, TypeAlias

from prometheus_client import Counter

from soundmark.core.domain.billing.catalog import ProviderName

NotificationOutcome: TypeAlias = Literal[
    "processed",
    "pending",
    "ignored",
    "repeated",
    "unauthenticated",
    "unknown",
    "limited",
    "not_verified",
    "unavailable",
]

_OUTCOMES: Final[dict[ProviderName, tuple[NotificationOutcome, ...]]] = {
    "card": ("processed", "pending", "ignored", "repeated", "unauthenticated", "unavailable"),
    "local": ("processed", "pending", "ignored", "repeated", "unknown", "limited", "not_verified", "unavailable"),
}
_notifications: Final = Counter(
    "soundmark_payment_notifications_total", "Notifications of payment providers, by outcome.", ["provider", "outcome"]
)
for _provider, _known in _OUTCOMES.items():
    for _outcome in _known:
        _notifications.labels(_provider, _outcome)  # Exported as zero from the start.


def count_notification(provider: ProviderName, outcome: NotificationOutcome) -> None:
    """Count one notification."""
    assert outcome in _OUTCOMES[provider], "every outcome is exported from the start"
    _notifications.labels(provider, outcome).inc()
