"""A purchase must agree with its checkout before anything is granted; later its price may be another offer's."""

from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.billing.card_purchase import CardPurchase, begin_purchase, insert_checkout, make_purchase, status_of
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant

OTHER_PRICE = "price_MARKyearly"


async def require_nothing_granted(rival: Rival) -> None:
    assert await rival.rows("SELECT 1 FROM subscriptions") == []
    assert await rival.rows("SELECT 1 FROM card_customers") == []
    assert await rival.rows("SELECT DISTINCT status FROM checkouts") == [("pending",)]


def warnings_in(logs: list[Any]) -> list[tuple[str, str | None]]:
    return [(line["event"], line.get("reason")) for line in logs if line["log_level"] == "warning"]


SESSION_FAULTS: dict[str, dict[str, Any]] = {
    "client_reference_id": {"client_reference_id": "bco_of_somebody_else"},
    "session_metadata missing": {"svc_offer_id": None},
}


@pytest.mark.parametrize("fault", SESSION_FAULTS)
async def test_a_session_that_disagrees_with_its_checkout_grants_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox, fault: str
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    changes = dict(SESSION_FAULTS[fault])
    if "svc_offer_id" in changes:
        metadata = {**purchase.metadata, **changes}
        changes = {"metadata": {key: value for key, value in metadata.items() if value is not None}}

    with capture_logs() as logs:
        assert await status_of(tenant.api, purchase.event("checkout.session.completed", **changes)) == "ignored"

    assert ("card_payment_disagrees", fault.partition(" ")[0]) in warnings_in(logs)
    await require_nothing_granted(rival)


@pytest.mark.parametrize("kind", ["checkout.session.completed", "invoice.paid"])
async def test_a_subscription_that_disagrees_with_its_checkout_grants_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox, kind: str
) -> None:
    """It is judged as the provider has it, even if the event says what it should."""
    purchase = await begin_purchase(tenant, rival, card)
    metadata = {**purchase.metadata, "svc_organization_id": "org_of_somebody_else"}
    await purchase.publish(card, metadata=metadata)

    with capture_logs() as logs:
        assert await status_of(tenant.api, purchase.event(kind)) == "ignored"

    assert ("card_payment_disagrees", "subscription_metadata") in warnings_in(logs)
    await require_nothing_granted(rival)


@pytest.mark.parametrize("prices", [[OTHER_PRICE], ["price_MARKmonthly", OTHER_PRICE]], ids=str)
async def test_another_price_than_the_one_that_was_bound_grants_nothing(
    tenant: Tenant, rival: Rival, card: RunningSandbox, prices: list[str]
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    end = int(purchase.period_end.timestamp())
    items = {"data": [{"price": {"id": price}, "current_period_end": end} for price in prices]}
    await purchase.publish(card, items=items)

    with capture_logs() as logs:
        assert await status_of(tenant.api, purchase.event("checkout.session.completed")) == "ignored"

    assert ("card_payment_disagrees", "price") in warnings_in(logs)
    assert not any(price in str(logs) for price in prices)
    await require_nothing_granted(rival)


async def test_a_session_of_another_organisation_grants_neither_anything(
    tenant: Tenant, rival: Rival, card: RunningSandbox, people: People
) -> None:
    """The session names one organisation's checkout, the subscription the other's."""
    other = await people.tenant_of("ada")
    theirs = await begin_purchase(other, rival, card)
    ours = await begin_purchase(tenant, rival, card)

    crossed = ours.event("checkout.session.completed", subscription=theirs.subscription_id)

    assert await status_of(tenant.api, crossed) == "ignored"
    await require_nothing_granted(rival)


async def test_a_subscription_stays_with_the_checkout_that_it_was_first_paid_for(
    tenant: Tenant, rival: Rival, card: RunningSandbox, people: People
) -> None:
    """Even if its metadata are changed at the provider later."""
    other = await people.tenant_of("ada")
    ours = await begin_purchase(tenant, rival, card)
    await status_of(tenant.api, ours.event("checkout.session.completed"))
    theirs = make_purchase(other)
    await insert_checkout(rival, theirs)
    later = ours.began_at + timedelta(seconds=5)
    ours.changes = {"metadata": theirs.metadata, "cancel_at_period_end": True}
    await ours.publish(card)

    updated = ours.event("customer.subscription.updated", at=later, metadata=theirs.metadata)
    session = theirs.event("checkout.session.completed", subscription=ours.subscription_id)

    assert await status_of(tenant.api, updated) == "processed"
    assert await status_of(tenant.api, session) == "ignored"
    assert await rival.rows("SELECT organization_id, cancel_at_period_end FROM subscriptions") == [
        (tenant.organization_id, True)
    ]
    assert await rival.rows("SELECT status FROM checkouts WHERE id = %s", theirs.checkout_id) == [("pending",)]


async def test_a_checkout_of_another_organisation_is_not_found_by_its_id_alone(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    other = await make_tenant(tenant.api)
    purchase = await begin_purchase(tenant, rival, card)
    metadata = {**purchase.metadata, "svc_organization_id": other.organization_id}

    with capture_logs() as logs:
        event = purchase.event("customer.subscription.created", metadata=metadata)
        assert await status_of(tenant.api, event) == "ignored"

    assert ("card_event_unmatched", None) in warnings_in(logs)
    assert await card.calls("card") == []


async def test_a_customer_of_another_organisation_is_not_taken_over(
    tenant: Tenant, rival: Rival, card: RunningSandbox, people: People
) -> None:
    """The payment counts; but the customer's portal would show the other organisation's purchases."""
    other = await people.tenant_of("ada")
    theirs = await begin_purchase(other, rival, card, customer="cus_MARKshared")
    await status_of(tenant.api, theirs.event("checkout.session.completed"))
    ours = await begin_purchase(tenant, rival, card, customer="cus_MARKshared")

    with capture_logs() as logs:
        assert await status_of(tenant.api, ours.event("checkout.session.completed")) == "processed"

    assert ("card_customer_of_another_organization", None) in warnings_in(logs)
    assert await rival.rows("SELECT organization_id FROM card_customers") == [(other.organization_id,)]
    assert await rival.rows("SELECT count(*) FROM subscriptions WHERE status = 'active'") == [(2,)]


async def test_a_later_customer_replaces_the_earlier_one(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    for customer in ("cus_MARKfirst", "cus_MARKsecond"):
        purchase = await begin_purchase(tenant, rival, card, customer=customer)
        await status_of(tenant.api, purchase.event("checkout.session.completed"))

    assert await rival.rows("SELECT customer_reference FROM card_customers") == [("cus_MARKsecond",)]


async def sell_other_plan(rival: Rival, *, active: bool = True, price: str = OTHER_PRICE) -> None:
    await rival.run(
        "INSERT INTO plans (id, name, product, monthly_code_quota, active, updated_at)"
        " VALUES ('plan_codes_large', 'Large', 'codes', 5000, true, now())"
    )
    await rival.run(
        "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_status, updated_at)"
        " VALUES ('offer_large', 'plan_codes_large', 'card', %s, %s, 'unknown', now())",
        active,
        price,
    )


async def move_to(card: RunningSandbox, purchase: CardPurchase, tenant: Tenant, price: str, *, after_s: int) -> str:
    """Let the customer choose another price in the portal."""
    purchase.price = price
    await purchase.publish(card)
    at = purchase.began_at + timedelta(seconds=after_s)
    return await status_of(tenant.api, purchase.event("customer.subscription.updated", at=at))


@pytest.mark.parametrize("active", [True, False])
async def test_the_price_of_another_offer_moves_the_subscription_to_its_plan_and_back(
    tenant: Tenant, rival: Rival, card: RunningSandbox, *, active: bool
) -> None:
    await sell_other_plan(rival, active=active)
    purchase = await begin_purchase(tenant, rival, card)
    own_price = purchase.price
    await status_of(tenant.api, purchase.event("checkout.session.completed"))

    assert await move_to(card, purchase, tenant, OTHER_PRICE, after_s=1) == "processed"
    assert await rival.rows("SELECT plan_id FROM subscriptions") == [("plan_codes_large",)]
    assert await move_to(card, purchase, tenant, own_price, after_s=2) == "processed"
    assert await rival.rows("SELECT plan_id FROM subscriptions") == [("plan_codes_studio",)]


async def test_a_price_that_nobody_knows_leaves_the_plan_and_is_logged_for_a_person(
    tenant: Tenant, rival: Rival, card: RunningSandbox
) -> None:
    await sell_other_plan(rival)
    purchase = await begin_purchase(tenant, rival, card)
    await status_of(tenant.api, purchase.event("checkout.session.completed"))
    await move_to(card, purchase, tenant, OTHER_PRICE, after_s=1)

    with capture_logs() as logs:
        assert await move_to(card, purchase, tenant, "price_MARKunknown", after_s=2) == "processed"

    assert ("card_price_unknown", None) in warnings_in(logs)
    assert "price_MARK" not in str(logs)
    assert await rival.rows("SELECT plan_id, status FROM subscriptions") == [("plan_codes_large", "active")]
