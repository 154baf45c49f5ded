"""What the worker's metrics say about deliveries."""

from prometheus_client import REGISTRY
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import WebhookConsumer

from .conftest import Endpoints, Steps


def read_backlog() -> tuple[float | None, ...]:
    """Return the number of pending deliveries, the age of the oldest, and for how long the first due one has waited."""
    names = ("deliveries_pending", "oldest_pending_seconds", "overdue_seconds")
    return tuple(REGISTRY.get_sample_value(f"soundmark_webhook_{name}") for name in names)


def read_attempts() -> dict[str, float]:
    return {
        outcome: REGISTRY.get_sample_value("soundmark_webhook_attempts_total", {"outcome": outcome}) or 0.0
        for outcome in ("delivered", "retried", "failed")
    }


async def test_the_backlog_and_the_attempts_are_measured(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, steps: Steps, clock: FakeClock
) -> None:
    clock.freeze()
    await endpoints.make(consumer.url, event_types=["campaign.created"])
    before = read_attempts()
    consumer.otherwise = 500
    await tenant.make_campaign("First")
    await steps.deliver()
    clock.advance(seconds=60)  # It was due again after five seconds or a little more.
    await steps.dispatcher.watch_once()
    pending_count, oldest_s, overdue_s = read_backlog()
    assert (pending_count, oldest_s) == (1, 60)
    assert overdue_s is not None
    assert 54 <= overdue_s <= 56

    consumer.otherwise = 204
    await steps.deliver()
    await steps.dispatcher.watch_once()
    assert read_backlog() == (0, 0, 0)
    assert {outcome: count - before[outcome] for outcome, count in read_attempts().items()} == {
        "delivered": 1,
        "retried": 1,
        "failed": 0,
    }
