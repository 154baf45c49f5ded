# Generated from `../_async/billing.py` by `make_blocking.py`: change that file, then run this program.
"""Billing: offers, checkouts, subscriptions, and the catalogue behind them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, TypeVar

from soundmark_sdk.client._sync.group import Group
from soundmark_sdk.client.calls import PAGE_SIZE_MAX, Call, make_call, make_get, quote_id, write_body
from soundmark_sdk.client.issuer import choose_key
from soundmark_sdk.client.records import (
    AccountingCustomer,
    AudienceContract,
    Catalog,
    CatalogOffer,
    Checkout,
    Offers,
    Page,
    PaymentProvider,
    PendingCheckouts,
    Plan,
    Portal,
    Record,
    StartedCheckout,
    Subscription,
)
from soundmark_sdk.client.requests import write_time

R = TypeVar("R", bound=Record)


class Billing(Group):
    """Offers, and the purchases of an organisation. An API key may call none of these."""

    def offers(self, *, country: str | None = None) -> Offers:
        """Return all offers for sale, or those for sale in a country (two letters)."""
        return self._sender.call(Offers, make_get("/v1/billing/offers", country=country))

    def create_checkout(
        self, offer_id: str, *, idempotency_key: str | None = None, organization_id: str | None = None
    ) -> StartedCheckout:
        """Start a purchase, and return its payment page.

        Retries of one call create one checkout. To create one checkout with several calls, pass the same idempotency
        key.
        """
        tenant = self._sender.choose_organization(organization_id)
        body = write_body({"offer_id": offer_id})
        headers = {"Idempotency-Key": choose_key(idempotency_key)}
        call = Call("POST", "/v1/billing/checkouts", tenant, body, headers, is_repeatable=True)
        return self._sender.call(StartedCheckout, call)

    def get_checkout(self, checkout_id: str, *, organization_id: str | None = None) -> Checkout:
        """Return a checkout, without the address of its page."""
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Checkout, make_get(f"/v1/billing/checkouts/{quote_id(checkout_id)}", **tenant))

    def pending_checkouts(self, *, organization_id: str | None = None) -> PendingCheckouts:
        """Return the checkouts that wait for a payment, oldest first: ten at most."""
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(PendingCheckouts, make_get("/v1/billing/checkouts", **tenant))

    def cancel_checkout(self, checkout_id: str, *, organization_id: str | None = None) -> Checkout:
        """Give up a pending checkout, and return it: `expired`, `failed`, or `completed` if it was paid meanwhile.

        One that has ended is returned as it is.

        Raises: ApiProblem `checkout_not_cancellable` while it can still be paid.
        """
        tenant = self._sender.choose_organization(organization_id)
        path = f"/v1/billing/checkouts/{quote_id(checkout_id)}/cancel"
        call = Call("POST", path, tenant, is_repeatable=True)
        return self._sender.call(Checkout, call)

    def open_portal(self, *, organization_id: str | None = None) -> Portal:
        """Return the card provider's page for changing or cancelling the organisation's subscriptions."""
        tenant = self._sender.choose_organization(organization_id)
        call = Call("POST", "/v1/billing/portal", tenant, is_repeatable=True)
        return self._sender.call(Portal, call)


class Subscriptions(Group):
    """The subscriptions of an organisation. An API key may call none of these."""

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Subscription]:
        """Return one page of an organisation's subscriptions."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/billing/subscriptions", **tenant, limit=limit, cursor=cursor)
        return self._sender.get_page(Subscription, call)

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[Subscription]:
        """Yield every subscription of an organisation."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/billing/subscriptions", **tenant, limit=page_size)
        yield from self._sender.iterate(Subscription, call)


class BillingCatalog(Group):
    """The catalogue, for administrators of the platform."""

    def get(self) -> Catalog:
        """Return all providers, plans, offers, contracts and accounting customers."""
        return self._sender.call(Catalog, make_get("/v1/billing/admin/catalog"))

    def put_provider(self, provider: Literal["card", "local"], *, enabled: bool) -> PaymentProvider:
        """Put the offers of a payment provider on sale, or withdraw them."""
        return self._put(PaymentProvider, f"providers/{quote_id(provider)}", {"enabled": enabled})

    def put_codes_plan(self, plan_id: str, *, name: str, monthly_code_quota: int, active: bool) -> Plan:
        """Create or change a plan of Codes."""
        document = {"name": name, "product": "codes", "monthly_code_quota": monthly_code_quota, "active": active}
        return self._put(Plan, f"plans/{quote_id(plan_id)}", document)

    def put_audience_plan(self, plan_id: str, *, name: str, monthly_event_quota: int, active: bool) -> Plan:
        """Create or change a plan of Audience."""
        document = {"name": name, "product": "audience", "monthly_event_quota": monthly_event_quota, "active": active}
        return self._put(Plan, f"plans/{quote_id(plan_id)}", document)

    def put_card_offer(self, offer_id: str, *, plan_id: str, price_reference: str, active: bool) -> CatalogOffer:
        """Create or change a card offer. The service looks up its price at the card provider."""
        document = {"plan_id": plan_id, "provider": "card", "active": active, "price_reference": price_reference}
        return self._put(CatalogOffer, f"offers/{quote_id(offer_id)}", document)

    def put_local_offer(
        self, offer_id: str, *, plan_id: str, amount_minor: int, entitlement_months: int, active: bool
    ) -> CatalogOffer:
        """Create or change an offer of the local provider. The amount is in millimes of the Tunisian dinar."""
        document = {
            "plan_id": plan_id,
            "provider": "local",
            "active": active,
            "country": "TN",
            "currency": "TND",
            "amount_minor": amount_minor,
            "entitlement_months": entitlement_months,
        }
        return self._put(CatalogOffer, f"offers/{quote_id(offer_id)}", document)

    def put_audience_contract(
        self,
        organization_id: str,
        *,
        plan_id: str,
        contract_reference: str,
        status: Literal["active", "cancelled"],
        period_end: datetime | None = None,
    ) -> AudienceContract:
        """Create or replace an organisation's active contract for measuring, or cancel a contract."""
        document = {
            "plan_id": plan_id,
            "contract_reference": contract_reference,
            "status": status,
            "period_end": write_time(period_end),
        }
        return self._put(AudienceContract, f"audience-contracts/{quote_id(organization_id)}", document)

    def put_accounting_customer(self, organization_id: str, *, thirdparty_id: int) -> AccountingCustomer:
        """Set the third party in the accounting system to which an organisation's invoices are addressed."""
        path = f"dolibarr/customers/{quote_id(organization_id)}"
        return self._put(AccountingCustomer, path, {"thirdparty_id": thirdparty_id})

    def _put(self, kind: type[R], path: str, document: dict[str, Any]) -> R:
        call = make_call("PUT", f"/v1/billing/admin/{path}", document, is_repeatable=True)
        return self._sender.call(kind, call)
