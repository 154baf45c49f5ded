"""What happens to a subscription by command, and which events it makes."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from support.outside.card_sdk import call, create_session, make_client, read_subscription
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.webhooks.received_webhooks import ReceivedWebhooks

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


async def read_latest(sandbox: RunningSandbox, subscription_id: str) -> Any:
    """Return the latest invoice."""
    return (await read_subscription(sandbox, subscription_id)).latest_invoice


@pytest.mark.parametrize(
    ("behavior", "status"), [("void", "void"), ("keep_as_draft", "draft"), ("mark_uncollectible", "uncollectible")]
)
async def test_while_its_collection_is_paused_it_stays_active_and_is_never_paid(
    sandbox: RunningSandbox, core: ReceivedWebhooks, behavior: str, status: str
) -> None:
    subscription_id = await subscribe(sandbox)
    await sandbox.control(f"/card/subscriptions/{subscription_id}", pause_collection=behavior)
    await list_types(sandbox, core)
    for act in ("renew", "fail-renewal"):
        await sandbox.control(f"/card/subscriptions/{subscription_id}/{act}")
        assert await list_types(sandbox, core) == ["customer.subscription.updated"]
        subscription = await read_subscription(sandbox, subscription_id)
        assert (subscription.status, subscription.pause_collection.behavior) == ("active", behavior)
        assert (subscription.latest_invoice.status, subscription.latest_invoice.amount_paid) == (status, 0)

    await sandbox.control(f"/card/subscriptions/{subscription_id}/resume-collection")
    await sandbox.control(f"/card/subscriptions/{subscription_id}/renew")

    assert (await read_subscription(sandbox, subscription_id)).pause_collection is None
    assert (await read_latest(sandbox, subscription_id)).status == "paid"


async def test_the_collection_is_paused_by_an_act_and_its_invoices_are_void(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox)
    await sandbox.control(f"/card/subscriptions/{subscription_id}/pause-collection")
    await sandbox.control(f"/card/subscriptions/{subscription_id}/renew")
    assert (await read_latest(sandbox, subscription_id)).status == "void"
    await sandbox.control(f"/card/subscriptions/{subscription_id}/recover")
    assert (await read_latest(sandbox, subscription_id)).status == "void", "nothing can be paid of it"


async def test_an_unpaid_subscription_makes_drafts_until_one_is_paid(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox)
    await sandbox.control(f"/card/subscriptions/{subscription_id}", status="unpaid")
    await sandbox.control(f"/card/subscriptions/{subscription_id}/renew")
    subscription = await read_subscription(sandbox, subscription_id)
    assert (subscription.status, subscription.latest_invoice.status) == ("unpaid", "draft")
    await sandbox.control(f"/card/subscriptions/{subscription_id}/recover")
    subscription = await read_subscription(sandbox, subscription_id)
    assert (subscription.status, subscription.latest_invoice.status) == ("active", "paid")


async def test_a_paused_subscription_makes_no_invoices(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox)
    await sandbox.control(f"/card/subscriptions/{subscription_id}", status="paused")
    for act in ("renew", "fail-renewal"):
        refused = await sandbox.client.post(f"/control/card/subscriptions/{subscription_id}/{act}", json={})
        assert refused.status_code == 409
    assert (await read_latest(sandbox, subscription_id)).billing_reason == "subscription_create"


async def test_a_change_of_price_is_prorated_on_the_next_invoice(sandbox: RunningSandbox) -> None:
    """The provider lists prorations before the charge for the new period."""
    subscription_id = await subscribe(sandbox)
    before = await read_latest(sandbox, subscription_id)
    path = f"/card/subscriptions/{subscription_id}"
    await sandbox.control(path, price="price_sandbox_large_monthly")
    assert (await read_latest(sandbox, subscription_id)).id == before.id
    await sandbox.control(f"{path}/renew")

    credit, charge, renewal = (await read_latest(sandbox, subscription_id)).lines.data

    assert credit.amount < 0 < charge.amount
    assert {line.parent.invoice_item_details.subscription for line in (credit, charge)} == {subscription_id}
    assert (renewal.parent.type, renewal.amount) == ("subscription_item_details", 4900)
    assert credit.period.end == charge.period.end == before.lines.data[0].period.end == renewal.period.start


@pytest.mark.parametrize(
    ("is_paid", "status", "invoice_status"), [(True, "active", "paid"), (False, "past_due", "open")]
)
async def test_a_change_of_price_may_be_invoiced_at_once_and_fail(
    sandbox: RunningSandbox, is_paid: bool, status: str, invoice_status: str
) -> None:
    subscription_id = await subscribe(sandbox)
    path = f"/card/subscriptions/{subscription_id}"
    large = "price_sandbox_large_monthly"
    await sandbox.control(path, price=large, proration_behavior="always_invoice", is_paid=is_paid)
    subscription = await read_subscription(sandbox, subscription_id)
    invoice = subscription.latest_invoice
    assert (subscription.status, invoice.status, invoice.billing_reason) == (
        status, invoice_status, "subscription_update",
    )  # fmt: skip
    assert sum(line.amount for line in invoice.lines.data) == invoice.amount_due > 0


async def test_a_smaller_price_at_once_is_a_credit_that_is_paid(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox, line_items=[{"price": "price_sandbox_large_monthly", "quantity": 1}])
    await sandbox.control(
        f"/card/subscriptions/{subscription_id}",
        price="price_sandbox_monthly", proration_behavior="always_invoice", is_paid=False,
    )  # fmt: skip
    invoice = await read_latest(sandbox, subscription_id)
    assert (invoice.status, invoice.amount_due, invoice.amount_paid) == ("paid", 0, 0)
    assert invoice.total < 0


async def test_another_interval_begins_a_new_period_with_an_invoice(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox)
    await sandbox.control(f"/card/subscriptions/{subscription_id}", price="price_sandbox_yearly")
    subscription = await read_subscription(sandbox, subscription_id)
    credit, charge = subscription.latest_invoice.lines.data
    assert (credit.amount < 0, charge.amount) == (True, 19000)
    assert charge.period.end == subscription["items"].data[0].current_period_end


async def test_the_end_of_a_trial_moves_and_stays_after_it(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox, subscription_data={"trial_period_days": 14})
    (item,) = (await read_subscription(sandbox, subscription_id))["items"].data
    later = item.current_period_end + 86_400
    await sandbox.control(f"/card/subscriptions/{subscription_id}", trial_end=later)
    subscription = await read_subscription(sandbox, subscription_id)
    assert (subscription.status, subscription.trial_end) == ("trialing", later)
    assert subscription["items"].data[0].current_period_end == later
    await sandbox.control(f"/card/subscriptions/{subscription_id}/renew")
    assert (await read_subscription(sandbox, subscription_id)).trial_end == later


async def test_lines_of_both_kinds_have_the_older_shape_too(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox)
    await sandbox.control(f"/card/subscriptions/{subscription_id}", price="price_sandbox_yearly")
    await sandbox.control("/card/settings", api_shape="acacia")
    credit, charge = (await read_latest(sandbox, subscription_id)).lines.data
    assert (credit.type, credit.proration, credit.price.id) == ("invoiceitem", True, "price_sandbox_monthly")
    assert (charge.type, charge.proration, charge.price.id) == ("subscription", False, "price_sandbox_yearly")
    assert credit.subscription == charge.subscription == subscription_id


async def test_an_invoice_includes_ten_lines_and_the_others_are_listed(sandbox: RunningSandbox) -> None:
    subscription_id = await subscribe(sandbox)
    path = f"/card/subscriptions/{subscription_id}"
    for _ in range(5):
        for price in ("price_sandbox_large_monthly", "price_sandbox_monthly"):
            await sandbox.control(path, price=price)
    await sandbox.control(f"{path}/renew")
    invoice = await read_latest(sandbox, subscription_id)
    assert (len(invoice.lines.data), invoice.lines.has_more) == (10, True)
    assert {line.parent.type for line in invoice.lines.data} == {"invoice_item_details"}

    lines = await call(make_client(sandbox).v1.invoices.line_items.list, invoice.id, {"limit": 100})

    assert (len(lines.data), lines.has_more) == (21, False)
    assert lines.data[-1].parent.type == "subscription_item_details"
