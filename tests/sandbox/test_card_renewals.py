"""What happens to a subscription by command, and which events it makes."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from support.card_sdk import create_session, read_subscription
from support.fake_clock import FakeClock
from support.received_webhooks import ReceivedWebhooks
from support.running_sandbox import RunningSandbox

PURCHASE = ["customer.subscription.created", "invoice.paid", "checkout.session.completed"]


async def subscribe(sandbox: RunningSandbox, act: str = "pay", **changes: Any) -> str:
    """Return the id of a subscription that was bought."""
    session = await create_session(sandbox, **changes)
    await sandbox.control(f"/card/sessions/{session.id}/{act}")
    subscription_id: str = (await sandbox.look("card"))["sessions"][0]["subscription"]
    return subscription_id


async def list_types(sandbox: RunningSandbox, core: ReceivedWebhooks) -> list[str]:
    """Return the types of the events that were received since the last time."""
    await sandbox.settle()
    types = [json.loads(request.body)["type"] for request in core.requests]
    core.requests.clear()
    return types


async def test_a_renewal_is_a_paid_invoice_and_a_later_period(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    subscription_id = await subscribe(sandbox)
    before = await read_subscription(sandbox, subscription_id)
    assert await list_types(sandbox, core) == PURCHASE
    await sandbox.control(f"/card/subscriptions/{subscription_id}/renew")
    assert await list_types(sandbox, core) == ["invoice.paid", "customer.subscription.updated"]
    after = await read_subscription(sandbox, subscription_id)
    assert after["items"].data[0].current_period_start == before["items"].data[0].current_period_end
    assert (after.latest_invoice.billing_reason, after.latest_invoice.status) == ("subscription_cycle", "paid")
    assert after.latest_invoice.id != before.latest_invoice.id
    line = after.latest_invoice.lines.data[0]
    assert line.period.end == after["items"].data[0].current_period_end


async def test_a_renewal_that_fails_is_past_due_until_it_is_paid(
    sandbox: RunningSandbox, core: ReceivedWebhooks
) -> None:
    subscription_id = await subscribe(sandbox)
    await list_types(sandbox, core)
    await sandbox.control(f"/card/subscriptions/{subscription_id}/fail-renewal")
    assert await list_types(sandbox, core) == ["invoice.payment_failed", "customer.subscription.updated"]
    subscription = await read_subscription(sandbox, subscription_id)
    assert (subscription.status, subscription.latest_invoice.status) == ("past_due", "open")
    assert subscription.latest_invoice.amount_paid == 0
    await sandbox.control(f"/card/subscriptions/{subscription_id}/recover")
    assert await list_types(sandbox, core) == ["invoice.paid", "customer.subscription.updated"]
    assert (await read_subscription(sandbox, subscription_id)).status == "active"


async def test_a_cancelled_subscription_ends_instead_of_renewing(
    sandbox: RunningSandbox, core: ReceivedWebhooks
) -> None:
    subscription_id = await subscribe(sandbox)
    await list_types(sandbox, core)
    await sandbox.control(f"/card/subscriptions/{subscription_id}/cancel-at-period-end")
    await sandbox.control(f"/card/subscriptions/{subscription_id}/renew")
    assert await list_types(sandbox, core) == ["customer.subscription.updated", "customer.subscription.deleted"]
    subscription = await read_subscription(sandbox, subscription_id)
    assert subscription.status == "canceled"
    assert subscription.ended_at
    ended = await sandbox.client.post(f"/control/card/subscriptions/{subscription_id}/renew", json={})
    assert ended.status_code == 409


@pytest.mark.parametrize(
    ("act", "types", "status", "payment_status"),
    [
        (
            "settle",
            ["invoice.paid", "customer.subscription.updated", "checkout.session.async_payment_succeeded"],
            "active",
            "paid",
        ),
        ("fail", ["invoice.payment_failed", "customer.subscription.updated"], "incomplete_expired", "unpaid"),
    ],
)
async def test_a_later_payment_is_decided_by_command(
    sandbox: RunningSandbox, core: ReceivedWebhooks, act: str, types: list[str], status: str, payment_status: str
) -> None:
    subscription_id = await subscribe(sandbox, act="pay-later")
    assert await list_types(sandbox, core) == ["customer.subscription.created", "checkout.session.completed"]
    (session,) = (await sandbox.look("card"))["sessions"]
    decided = await sandbox.control(f"/card/sessions/{session['id']}/{act}")
    assert decided["payment_status"] == payment_status
    assert await list_types(sandbox, core) == types
    assert (await read_subscription(sandbox, subscription_id)).status == status


async def test_a_month_that_begins_on_its_last_day_keeps_it(sandbox: RunningSandbox, clock: FakeClock) -> None:
    clock.frozen_at = datetime(2027, 1, 31, 12, tzinfo=UTC)
    subscription_id = await subscribe(sandbox)
    ends = []
    for _ in range(3):
        (item,) = (await read_subscription(sandbox, subscription_id))["items"].data
        ends.append(datetime.fromtimestamp(item.current_period_end, UTC).date().isoformat())
        await sandbox.control(f"/card/subscriptions/{subscription_id}/renew")
    assert ends == ["2027-02-28", "2027-03-31", "2027-04-30"]


async def test_a_trial_is_free(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox, subscription_data={"trial_period_days": 14})
    (session,) = (await sandbox.look("card"))["sessions"]
    assert (session["payment_status"], session["amount_total"]) == ("no_payment_required", 0)
    subscription = await read_subscription(sandbox, subscription_id)
    assert (subscription.status, subscription.latest_invoice.amount_paid) == ("trialing", 0)


async def test_a_subscription_takes_any_status_and_price(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox)
    await sandbox.control(f"/card/subscriptions/{subscription_id}", status="paused", price="price_sandbox_yearly")
    subscription = await read_subscription(sandbox, subscription_id)
    assert subscription.status == "paused"
    assert subscription["items"].data[0].price.recurring.interval == "year"


async def test_an_event_with_any_object_can_be_sent(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    made = await sandbox.control("/card/events", type="customer.created", object={"id": "cus_1", "object": "customer"})
    await sandbox.settle()
    assert json.loads(core.requests[0].body) == made
