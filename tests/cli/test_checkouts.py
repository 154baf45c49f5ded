"""`soundmark billing` buys, shows and gives up, against a real Core and the card provider of the sandbox."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
from support.api.core_settings import OPERATOR_TOKEN
from support.processes.running_apps import served_in_thread

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.sandbox.app import create_app as create_sandbox
from soundmark.sandbox.options import SandboxOptions, choose_credentials

from .conftest import Done, Service, Tenant, answered, serving_core

OFFER = "offer_codes_monthly"


@dataclass(frozen=True)
class CardProvider:
    """The sandbox, whose card provider is asked."""

    url: str
    secret_key: str

    def look(self, kind: str) -> list[dict[str, Any]]:
        """Return what it has of a kind, the newest first."""
        found: list[dict[str, Any]] = httpx2.get(f"{self.url}/control/card").json()[kind]
        return found

    def do(self, path: str, **fields: Any) -> None:
        assert httpx2.post(f"{self.url}/control{path}", json=fields).status_code == 200


@pytest.fixture(scope="module")
def card() -> Iterator[CardProvider]:
    """The card provider."""
    options = SandboxOptions("", choose_credentials({}, SystemEntropy()))
    with served_in_thread(create_sandbox(options)) as url:
        yield CardProvider(url, options.secret("CARD_SECRET_KEY"))


@pytest.fixture
def buyer(service: Service, tenant: Tenant, card: CardProvider) -> Iterator[Tenant]:
    """The tenant at a Core that knows the card provider, with an offer for sale."""
    service.run_sql(
        "INSERT INTO plans (id, name, product, monthly_code_quota, active, updated_at)"
        " VALUES ('plan_studio', 'Studio', 'codes', 1000, true, now())"
    )
    service.run_sql("UPDATE payment_providers SET enabled = true WHERE name = 'card'")
    service.run_sql(
        "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_status, updated_at)"
        " VALUES (%s, 'plan_studio', 'card', true, 'price_sandbox_monthly', 'known', now())",
        OFFER,
    )
    card.do("/reset")
    url = f"{card.url}/card"
    with serving_core(service.database_url, card_api_url=url, card_secret_key=card.secret_key) as selling:
        yield replace(tenant, service=selling)
    assert httpx2.get(f"{card.url}/control/calls").json()["complaints"] == []


def run(tenant: Tenant, *arguments: str) -> Done:
    return tenant.run("billing", *arguments, key=OPERATOR_TOKEN)


def test_an_offer_is_bought_and_the_checkout_shown(buyer: Tenant, card: CardProvider) -> None:
    made = answered(run(buyer, "checkout", OFFER, "--json"))

    shown = answered(run(buyer, "show", made["id"], "--json"))

    assert made.pop("checkout_url").startswith(f"{card.url}/card/pay/")
    assert shown == made


def test_a_person_reads_where_to_pay(buyer: Tenant, card: CardProvider) -> None:
    done = run(buyer, "checkout", OFFER)

    (session,) = card.look("sessions")
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(f" is pending; pay at {session['url']}\n")
    assert "pending" in run(buyer, "show", session["client_reference_id"]).out


def test_what_waits_for_a_payment_is_listed_and_given_up(buyer: Tenant, card: CardProvider) -> None:
    first, second = (answered(run(buyer, "checkout", OFFER, "--json")) for _ in range(2))
    listed = answered(run(buyer, "checkouts", "--json"))["data"]
    assert [each["id"] for each in listed] == [first["id"], second["id"]]

    done = run(buyer, "cancel", first["id"])
    again = answered(run(buyer, "cancel", first["id"], "--json"))

    assert (done.out, again["status"]) == (f"{first['id']} is expired\n", "expired")
    assert [each["status"] for each in card.look("sessions")] == ["open", "expired"]
    shown = run(buyer, "checkouts").out
    assert (first["id"] in shown, second["id"] in shown) == (False, True)


def test_a_command_that_is_repeated_with_its_key_prints_the_same_page(buyer: Tenant, card: CardProvider) -> None:
    keyed = ("checkout", OFFER, "--idempotency-key", "purchase-of-november", "--json")

    assert answered(run(buyer, *keyed)) == answered(run(buyer, *keyed))
    assert len(card.look("sessions")) == 1


def test_a_malformed_key_is_one_line(buyer: Tenant) -> None:
    assert "16 to 128" in run(buyer, "checkout", OFFER, "--idempotency-key", "short").refusal


def test_an_unknown_offer_and_checkout_are_one_line(buyer: Tenant) -> None:
    assert run(buyer, "checkout", "offer_unknown").refusal.startswith("offer_not_found (404)")
    assert run(buyer, "show", "bco_unknown").refusal.startswith("checkout_not_found (404)")


def test_a_server_key_buys_nothing(buyer: Tenant) -> None:
    assert buyer.run("billing", "checkout", OFFER).refusal.startswith("user_token_required (403)")


def test_the_portal_needs_a_customer(buyer: Tenant) -> None:
    assert run(buyer, "portal").refusal.startswith("customer_unavailable (409)")


def test_the_portal_is_one_address(buyer: Tenant, card: CardProvider, past_policies: Callable[..., None]) -> None:
    card.do("/card/customers", id="cus_known")
    past_policies("INSERT INTO card_customers VALUES (%s, 'cus_known', now())", buyer.organization_id)

    printed = run(buyer, "portal").out
    as_json = answered(run(buyer, "portal", "--json"))

    second, first = card.look("portal_sessions")
    assert (printed, as_json) == (f"{first['url']}\n", {"portal_url": second["url"]})
