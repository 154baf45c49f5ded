"""Counting what became of the desk's deliveries."""

from typing import Final, Literal, TypeAlias

from prometheus_client import Counter

from soundmark.core.features.support.desk_webhook.service import DeskOutcome

CountedOutcome: TypeAlias = DeskOutcome | Literal["unauthenticated"]

_OUTCOMES: Final[tuple[CountedOutcome, ...]] = ("processed", "duplicate", "ignored", "unauthenticated")
_deliveries: Final = Counter(
    "soundmark_desk_deliveries_total", "Deliveries of the support desk, by outcome.", ["outcome"]
)
for _outcome in _OUTCOMES:
    _deliveries.labels(_outcome)  # Exported as zero from the start.


def count_delivery(outcome: CountedOutcome) -> None:
    """Count one delivery."""
    _deliveries.labels(outcome).inc()
