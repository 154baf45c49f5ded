"""Metrics of deliveries, which the worker serves."""

from datetime import datetime
from typing import Final, Literal

from prometheus_client import Counter, Gauge

from soundmark.core.domain.webhooks.attempt import AttemptOutcome
from soundmark.core.store.webhooks.dispatch import Backlog

AttemptResult = Literal["delivered", "retried", "failed"]

_attempts: Final = Counter("soundmark_webhook_attempts_total", "Attempts to deliver an event, by outcome.", ["outcome"])
for _outcome in ("delivered", "retried", "failed"):
    _attempts.labels(_outcome)  # Exported as zero from the start.
_pending: Final = Gauge("soundmark_webhook_deliveries_pending", "Deliveries that are neither delivered nor failed.")
_oldest: Final = Gauge("soundmark_webhook_oldest_pending_seconds", "The age of the oldest pending delivery.")
_overdue: Final = Gauge("soundmark_webhook_overdue_seconds", "How long the oldest due delivery has waited.")


def count_attempt(outcome: AttemptOutcome) -> None:
    """Count one attempt."""
    result: AttemptResult = "retried" if outcome.status == "pending" else outcome.status
    _attempts.labels(result).inc()


def note_backlog(backlog: Backlog, *, now: datetime) -> None:
    """Note the pending deliveries of all organisations."""
    _pending.set(backlog.pending_count)
    for gauge, since in ((_oldest, backlog.oldest_created_at), (_overdue, backlog.due_since)):
        gauge.set(0 if since is None else max(0.0, (now - since).total_seconds()))
