"""`soundmark billing checkout`, `show` and `portal` against a real Core and a stand-in of the card provider."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.outside.card_stand_in import CARD_SECRET, CUSTOMER, PORTAL_URL, CardStandIn, running_card

from .conftest import Done, Service, Tenant, answered, serving_core

OFFER = "offer_codes_monthly"


@pytest.fixture(scope="module")
def card() -> Iterator[CardStandIn]:
    """The card provider, in an event loop of its own."""
    ready, over = threading.Event(), threading.Event()
    running: list[CardStandIn] = []

    async def serve() -> None:
        async with running_card() as server:
            running.append(server)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(30), "the stand-in must start"
    yield running[0]
    over.set()
    thread.join(10)


@pytest.fixture
def buyer(service: Service, tenant: Tenant, card: CardStandIn) -> Iterator[Tenant]:
    """The tenant at a Core that knows the card provider, with an offer for sale."""
    service.run_sql(
        "INSERT INTO plans (id, name, product, monthly_code_quota, active, updated_at)"
        " VALUES ('plan_studio', 'Studio', 'codes', 1000, true, now())"
    )
    service.run_sql("UPDATE payment_providers SET enabled = true WHERE name = 'card'")
    service.run_sql(
        "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_status, updated_at)"
        " VALUES (%s, 'plan_studio', 'card', true, 'price_MARK', 'known', now())",
        OFFER,
    )
    card.forget()
    with serving_core(service.database_url, card_api_url=card.url, card_secret_key=CARD_SECRET) as selling:
        yield replace(tenant, service=selling)
    assert card.complaints == []


def run(tenant: Tenant, *arguments: str) -> Done:
    return tenant.run("billing", *arguments, key=OPERATOR_TOKEN)


def test_an_offer_is_bought_and_the_checkout_shown(buyer: Tenant) -> None:
    made = answered(run(buyer, "checkout", OFFER, "--json"))

    shown = answered(run(buyer, "show", made["id"], "--json"))

    assert made.pop("checkout_url").startswith("https://checkout.example.com/")
    assert shown == made


def test_a_person_reads_where_to_pay(buyer: Tenant, card: CardStandIn) -> None:
    done = run(buyer, "checkout", OFFER)

    (session,) = card.sessions.values()
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(f" is pending; pay at {session['url']}\n")
    assert "pending" in run(buyer, "show", session["client_reference_id"]).out


def test_a_command_that_is_repeated_with_its_key_prints_the_same_page(buyer: Tenant, card: CardStandIn) -> None:
    keyed = ("checkout", OFFER, "--idempotency-key", "purchase-of-november", "--json")

    assert answered(run(buyer, *keyed)) == answered(run(buyer, *keyed))
    assert len(card.sessions) == 1


def test_a_malformed_key_is_one_line(buyer: Tenant) -> None:
    assert "16 to 128" in run(buyer, "checkout", OFFER, "--idempotency-key", "short").refusal


def test_an_unknown_offer_and_checkout_are_one_line(buyer: Tenant) -> None:
    assert run(buyer, "checkout", "offer_unknown").refusal.startswith("offer_not_found (404)")
    assert run(buyer, "show", "bco_unknown").refusal.startswith("checkout_not_found (404)")


def test_a_server_key_buys_nothing(buyer: Tenant) -> None:
    assert buyer.run("billing", "checkout", OFFER).refusal.startswith("user_token_required (403)")


def test_the_portal_needs_a_customer(buyer: Tenant) -> None:
    assert run(buyer, "portal").refusal.startswith("customer_unavailable (409)")


def test_the_portal_is_one_address(buyer: Tenant, past_policies: Callable[..., None]) -> None:
    past_policies("INSERT INTO card_customers VALUES (%s, %s, now())", buyer.organization_id, CUSTOMER)

    assert run(buyer, "portal").out == f"{PORTAL_URL}\n"
    assert answered(run(buyer, "portal", "--json")) == {"portal_url": PORTAL_URL}
