"""The official SDK works against the card stand-in as it does against the provider."""

import json
from typing import Any

import pytest
import stripe
from support.outside.card_sdk import METADATA, call, create_session, make_client, read_subscription, session_params
from support.outside.running_sandbox import RunningSandbox, running_sandbox
from support.processes.fake_clock import FakeClock
from support.webhooks.received_webhooks import ReceivedWebhooks


async def buy(sandbox: RunningSandbox, **changes: Any) -> Any:
    """Return a session that was paid on its page."""
    session = await create_session(sandbox, **changes)
    paid = await sandbox.client.post(session.url, data={"act": "pay"})
    assert paid.status_code == 303
    return await call(make_client(sandbox).v1.checkout.sessions.retrieve, session.id)


async def test_a_session_is_open_and_has_no_subscription_until_it_is_paid(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    assert (session.status, session.payment_status, session.subscription) == ("open", "unpaid", None)
    assert (session.client_reference_id, session.metadata.to_dict()) == ("bco_1", METADATA)
    assert (session.amount_total, session.currency) == (1900, "eur")
    assert session.url.startswith(f"{sandbox.url}/card/pay/{session.id}")


async def test_a_paid_session_has_an_active_subscription_with_a_paid_invoice(sandbox: RunningSandbox) -> None:
    session = await buy(sandbox)
    assert (session.status, session.payment_status, session.url) == ("complete", "paid", None)
    subscription = await read_subscription(sandbox, session.subscription)
    assert (subscription.status, subscription.customer) == ("active", session.customer)
    assert subscription.metadata.to_dict() == METADATA, "of the subscription's own data"
    (item,) = subscription["items"].data
    assert item.price.id == "price_sandbox_monthly"
    assert item.current_period_end > item.current_period_start
    assert "current_period_end" not in subscription
    invoice = subscription.latest_invoice
    assert (invoice.status, invoice.amount_paid, invoice.billing_reason) == ("paid", 1900, "subscription_create")
    assert invoice.parent.subscription_details.subscription == subscription.id
    assert "subscription" not in invoice


async def test_session_metadata_is_not_copied_to_the_subscription(sandbox: RunningSandbox) -> None:
    session = await buy(sandbox, subscription_data=None)
    subscription = await read_subscription(sandbox, session.subscription)
    assert subscription.metadata.to_dict() == {}


async def test_an_open_session_can_be_expired_once(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    sessions = make_client(sandbox).v1.checkout.sessions
    expired = await call(sessions.expire, session.id)
    assert (expired.status, expired.url) == ("expired", None)
    with pytest.raises(stripe.InvalidRequestError, match="can be expired"):
        await call(sessions.expire, session.id)


async def test_a_session_expires_by_itself_after_a_day(sandbox: RunningSandbox, clock: FakeClock) -> None:
    session = await create_session(sandbox)
    clock.advance(hours=24, seconds=1)
    read = await call(make_client(sandbox).v1.checkout.sessions.retrieve, session.id)
    assert read.status == "expired"


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"line_items": [{"price": "price_unknown", "quantity": 1}]}, "line_items[0][price]"),
        ({"line_items": None}, "line_items"),
        ({"success_url": None}, "success_url"),
        ({"customer_email": None, "customer": "cus_unknown"}, "customer"),
        ({"customer": "cus_unknown"}, "customer_email"),
        ({"expires_at": 1}, "expires_at"),
        ({"metadata": {"k" * 41: "v"}}, f"metadata[{'k' * 41}]"),
        ({"unknown_member": "1"}, "unknown_member"),
    ],
)
async def test_a_wrong_parameter_is_named(sandbox: RunningSandbox, changes: dict[str, Any], param: str) -> None:
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await create_session(sandbox, **changes)
    assert (refused.value.http_status, refused.value.param) == (400, param)
    assert refused.value.request_id


async def test_a_wrong_key_is_an_authentication_error(sandbox: RunningSandbox) -> None:
    with pytest.raises(stripe.AuthenticationError):
        await call(make_client(sandbox, key="sk_test_wrong").v1.prices.retrieve, "price_sandbox_monthly")


@pytest.mark.parametrize("kind", ["checkout.sessions", "subscriptions", "prices", "invoices", "customers", "events"])
async def test_an_unknown_object_is_404(sandbox: RunningSandbox, kind: str) -> None:
    service: Any = make_client(sandbox).v1
    for part in kind.split("."):
        service = getattr(service, part)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await call(service.retrieve, "nothing")
    assert (refused.value.http_status, refused.value.code) == (404, "resource_missing")


async def test_a_portal_needs_a_known_customer(sandbox: RunningSandbox) -> None:
    portals = make_client(sandbox).v1.billing_portal.sessions
    with pytest.raises(stripe.InvalidRequestError, match="No such customer"):
        await call(portals.create, {"customer": "cus_unknown"})
    session = await buy(sandbox)
    portal = await call(portals.create, {"customer": session.customer, "return_url": "http://127.0.0.1:8080/back"})
    assert portal.url.startswith(f"{sandbox.url}/card/portal/{portal.id}")
    assert portal.return_url == "http://127.0.0.1:8080/back"


async def test_a_price_says_what_it_costs(sandbox: RunningSandbox) -> None:
    price = await call(make_client(sandbox).v1.prices.retrieve, "price_sandbox_yearly")
    assert price.recurring is not None
    assert (price.currency, price.unit_amount, price.recurring.interval) == ("eur", 19000, "year")
    with_product = await call(make_client(sandbox).v1.prices.retrieve, "price_sandbox_yearly", {"expand": ["product"]})
    assert isinstance(with_product.product, stripe.Product)
    assert with_product.product.name == "Sandbox Yearly"


async def test_prices_are_listed_in_pages(sandbox: RunningSandbox) -> None:
    prices = make_client(sandbox).v1.prices
    page = await call(prices.list, {"limit": 1})
    assert ([price.id for price in page.data], page.has_more) == (["price_sandbox_monthly"], True)
    assert not (await call(prices.list)).has_more
    with pytest.raises(stripe.InvalidRequestError) as refused:
        await call(prices.list, {"limit": 0})
    assert refused.value.param == "limit"


async def test_an_unknown_expansion_is_refused(sandbox: RunningSandbox) -> None:
    with pytest.raises(stripe.InvalidRequestError, match="cannot be expanded"):
        await call(make_client(sandbox).v1.prices.retrieve, "price_sandbox_yearly", {"expand": ["currency"]})


async def test_events_are_listed_by_time_and_type_the_newest_first(sandbox: RunningSandbox, clock: FakeClock) -> None:
    clock.freeze()
    await buy(sandbox)
    clock.advance(seconds=10)
    since = int(clock.now().timestamp())
    session = await buy(sandbox)
    events = make_client(sandbox).v1.events
    listed = await call(events.list, {"created": {"gte": since}})
    assert [event.type for event in listed.data] == [
        "checkout.session.completed",
        "invoice.paid",
        "customer.subscription.created",
    ]
    assert listed.data[0].data.object.id == session.id
    few = await call(events.list, {"types": ["invoice.paid"], "limit": 1})
    assert ([event.type for event in few.data], few.has_more) == (["invoice.paid"], True)
    everything = await call(lambda: [event.id for event in events.list({"limit": 2}).auto_paging_iter()])
    assert len(everything) == len(set(everything)) == 6


async def test_the_same_key_returns_the_same_session(sandbox: RunningSandbox) -> None:
    first = await create_session(sandbox, key="bco_1-1")
    again = await create_session(sandbox, key="bco_1-1")
    other = await create_session(sandbox, key="bco_1-2")
    assert first.id == again.id != other.id
    assert again.last_response.headers["idempotent-replayed"] == "true"


async def test_the_same_key_with_other_parameters_is_an_error(sandbox: RunningSandbox) -> None:
    await create_session(sandbox, key="bco_1-1")
    with pytest.raises(stripe.IdempotencyError):
        await create_session(sandbox, key="bco_1-1", client_reference_id="bco_2")


async def test_a_500_is_stored_under_its_key(sandbox: RunningSandbox) -> None:
    """The provider stores the first answer whatever it is, so only another key helps."""
    await sandbox.misbehave("card", "server_error", operation="create_session")
    for _ in range(2):
        with pytest.raises(stripe.APIError) as failed:
            await create_session(sandbox, key="bco_1-1")
        assert failed.value.http_status == 500
    assert (await create_session(sandbox, key="bco_1-2")).status == "open"


async def test_a_500_that_advises_to_ask_again_is_not_stored(sandbox: RunningSandbox) -> None:
    headers = {"stripe-should-retry": "true"}
    await sandbox.misbehave("card", "server_error", operation="create_session", headers=headers)
    with pytest.raises(stripe.APIError):
        await create_session(sandbox, key="bco_1-1")
    assert (await create_session(sandbox, key="bco_1-1")).status == "open"


async def test_a_refused_parameter_is_not_stored(sandbox: RunningSandbox) -> None:
    with pytest.raises(stripe.InvalidRequestError):
        await create_session(sandbox, key="bco_1-1", success_url=None)
    assert (await create_session(sandbox, key="bco_1-1")).status == "open"


async def test_a_key_is_forgotten_after_a_day(sandbox: RunningSandbox, clock: FakeClock) -> None:
    first = await create_session(sandbox, key="bco_1-1")
    clock.advance(hours=24)
    assert (await create_session(sandbox, key="bco_1-1")).id != first.id


async def test_a_lost_answer_is_found_again_by_its_key(sandbox: RunningSandbox) -> None:
    await sandbox.misbehave("card", "lost_answer", operation="create_session")
    client = make_client(sandbox, retries=2)
    session = await call(client.v1.checkout.sessions.create, session_params(), {"idempotency_key": "bco_1-1"})
    assert [each["id"] for each in (await sandbox.look("card"))["sessions"]] == [session.id]


async def test_a_webhook_has_a_signature_that_the_sdk_verifies(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    session = await buy(sandbox)
    await sandbox.settle()
    secret = sandbox.secret("CARD_WEBHOOK_SECRET")
    assert {request.path for request in core.requests} == {"/v1/billing/webhooks/card"}
    events = [
        stripe.Webhook.construct_event(request.body, request.headers["stripe-signature"], secret)
        for request in core.requests
    ]
    assert [event.type for event in events] == [
        "customer.subscription.created",
        "invoice.paid",
        "checkout.session.completed",
    ]
    assert events[-1].data.object.id == session.id
    with pytest.raises(stripe.SignatureVerificationError):
        stripe.Webhook.construct_event(
            core.requests[0].body + b" ", core.requests[0].headers["stripe-signature"], secret
        )


async def test_while_a_secret_is_replaced_both_sign() -> None:
    core = ReceivedWebhooks()
    secrets = ["whsec_" + "a" * 32, "whsec_" + "b" * 32]
    async with running_sandbox(
        core_url="http://core.test", deliver_to=core, CARD_WEBHOOK_SECRET=",".join(secrets)
    ) as it:
        await buy(it)
        await it.settle()
    for secret in secrets:
        assert stripe.Webhook.construct_event(
            core.requests[0].body, core.requests[0].headers["stripe-signature"], secret
        )


async def test_the_older_shape_is_of_events_and_of_answers(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await sandbox.control("/card/settings", api_shape="acacia", event_shape="acacia")
    session = await buy(sandbox)
    subscription = await read_subscription(sandbox, session.subscription)
    assert subscription.current_period_end > subscription.current_period_start
    assert "current_period_end" not in subscription["items"].data[0]
    invoice = subscription.latest_invoice
    assert (invoice.subscription, invoice.paid) == (subscription.id, True)
    assert "parent" not in invoice
    await sandbox.settle()
    documents = [json.loads(request.body) for request in core.requests]
    assert {document["api_version"] for document in documents} == {"2025-02-24.acacia"}
    assert documents[1]["data"]["object"]["subscription"] == subscription.id
