"""`soundmark billing offers`: what is for sale."""

from typing import Any

import pytest
from support.billing.catalog import ADMIN, AUDIENCE_PLAN, CARD_OFFER, LOCAL_OFFER

from .conftest import Tenant, answered, cells


def put(tenant: Tenant, path: str, body: Any) -> None:
    tenant.service.client.put(f"{ADMIN}/{path}", json=body).raise_for_status()


@pytest.fixture
def selling(tenant: Tenant) -> Tenant:
    """A tenant of a service with a card offer, whose price is in tiers, and one of the local provider."""
    for provider in ("card", "local"):
        put(tenant, f"providers/{provider}", {"enabled": True})
    put(tenant, "plans/plan_1", AUDIENCE_PLAN)
    put(tenant, "offers/offer_card", CARD_OFFER)
    tenant.service.run_sql("UPDATE offers SET price_status = 'known'")
    put(tenant, "offers/offer_local", {**LOCAL_OFFER, "plan_id": "plan_1", "entitlement_months": 12})
    return tenant


def test_offers_are_listed_with_plan_and_price(selling: Tenant) -> None:
    """The price of a card offer is there if it is one amount."""
    local = ["offer_local", "Audience Plus", "50000 events", "local", "149.000 TND", "12 months"]
    card = ["offer_card", "Codes Starter", "100 Codes", "card"]
    assert cells(selling.run_as_operator("billing", "offers")) == [[*card, "", ""], local]
    selling.service.run_sql(
        "UPDATE offers SET currency = 'EUR', amount_minor = 4900, price_interval = 'month' WHERE id = 'offer_card'"
    )
    assert cells(selling.run_as_operator("billing", "offers"))[0] == [*card, "49.00 EUR", "each month"]
    for currency, price in (("JPY", "4900 JPY"), ("KWD", "4.900 KWD")):
        selling.service.run_sql(
            f"UPDATE offers SET currency = '{currency}', price_interval = NULL WHERE provider = 'card'"
        )
        assert cells(selling.run_as_operator("billing", "offers"))[0] == [*card, price, ""]


def test_a_country_leaves_out_the_offers_of_others(selling: Tenant) -> None:
    shown = answered(selling.run_as_operator("billing", "offers", "--country", "fr", "--json"))
    assert shown == selling.service.client.get("/v1/billing/offers?country=FR").json()
    assert [offer["id"] for offer in shown["data"]] == ["offer_card"]


def test_a_refusal_is_one_line(selling: Tenant) -> None:
    """An API key may not; nor may a country have three letters."""
    assert selling.run_with_key("billing", "offers").refusal.startswith("user_token_required (403)")
    wrong = selling.run_as_operator("billing", "offers", "--country", "TUN")
    assert wrong.refusal.startswith("validation_failed (422)")
