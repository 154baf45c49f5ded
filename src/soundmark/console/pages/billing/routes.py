"""The pages of billing."""

import asyncio
import re
import unicodedata
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from babel import Locale
from soundmark_sdk.client.records import Offer, Organization
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from soundmark.console.forms import FormMalformed
from soundmark.console.lookups import list_entitling
from soundmark.console.pages.billing import begun_checkouts
from soundmark.console.pages.billing.offered import find_offer, list_offers, read_country, remember_country
from soundmark.console.parts import read_part
from soundmark.console.purchases import list_pending
from soundmark.console.routing import form_page, page
from soundmark.console.troubles import make_trouble
from soundmark.console.visit import Visit
from soundmark.kit.text import base64url
from soundmark.kit.text.validation import is_secure_url

_PORTAL_COOKIE: Final = "portal"
_PORTAL_KEPT_S: Final = 24 * 3600
_KEY_BYTES: Final = 32
_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")
_SPENT: Final = frozenset({"idempotency_conflict", "form_malformed"})


async def show_subscriptions(visit: Visit) -> Response:
    """Show what an organisation has, how much of it is used, what waits for a payment, and all subscriptions."""
    subscriptions, usage, pending = await asyncio.gather(
        visit.core.subscriptions.page(cursor=visit.query("cursor")), read_part(visit.core.usage()), list_pending(visit)
    )
    return visit.page(
        "billing/subscriptions.html",
        subscriptions=subscriptions,
        live=list_entitling(subscriptions.data),
        usage=usage,
        pending=pending,
    )


async def open_portal(visit: Visit) -> Response:
    """Show the way to the card provider's page for changes and cancellations."""
    portal = await visit.core.billing.open_portal()
    response = show_way_out(visit, "portal", portal.portal_url)
    visit.console.jar.write(response, _PORTAL_COOKIE, visit.organization_id, max_age_s=_PORTAL_KEPT_S)
    return response


async def show_return(visit: Visit) -> Response:
    """Lead those who return from the portal to the billing of their organisation."""
    remembered = visit.console.jar.read(_PORTAL_COOKIE, visit.request.cookies)
    if isinstance(remembered, str) and await _find_organization(visit, remembered) is not None:
        return visit.redirect(f"/organizations/{remembered}/billing")
    organizations = await visit.core.organizations.page(cursor=visit.query("cursor"))
    return visit.page("billing/choose.html", organizations=organizations)


async def show_offers(visit: Visit) -> Response:
    """Show what is for sale, everywhere or in one country."""
    country = read_country(visit)
    response = visit.page(
        "billing/offers.html",
        offers=await list_offers(visit, country),
        country=country or "",
        countries=list_countries(visit.language.code),
        make_key=lambda offer_id: _choose_key(visit, offer_id),
    )
    remember_country(visit, response)
    return response


async def begin_checkout(visit: Visit) -> Response:
    """Begin the purchase of an offer, and show the way to the provider's page."""
    key = visit.form.text("idempotency_key")
    if _KEY.fullmatch(key) is None:
        raise FormMalformed
    offer_id = visit.form.text("offer_id")
    checkout, offer = await asyncio.gather(
        visit.core.billing.create_checkout(offer_id, idempotency_key=key), find_offer(visit, offer_id)
    )
    response = show_way_out(visit, "checkout", checkout.checkout_url, offer)
    begun_checkouts.remember(visit, response, checkout.id, visit.organization_id)
    return response


async def show_checkout(visit: Visit) -> Response:
    """Show the state of a purchase; the provider sends people back to this page."""
    checkout_id = visit.parameter("checkout_id")
    organization_id, checkout = await begun_checkouts.find(visit, checkout_id)
    visit.organization, offer = await asyncio.gather(
        _find_organization(visit, organization_id), find_offer(visit, checkout.offer_id)
    )
    path = f"/organizations/{organization_id}/billing"
    response = visit.page("billing/checkout.html", checkout=checkout, offer=offer, billing_path=path)
    begun_checkouts.remember(visit, response, checkout_id, organization_id)
    return response


async def give_up_checkout(visit: Visit) -> Response:
    """Give up a purchase that waits for a payment, and show what became of it: it may have been paid meanwhile."""
    checkout_id = visit.parameter("checkout_id")
    organization_id, _ = await begun_checkouts.find(visit, checkout_id)
    checkout = await visit.core.billing.cancel_checkout(checkout_id, organization_id=organization_id)
    notice = None if checkout.status == "completed" else "billing.checkout.given_up"
    return visit.redirect(f"/billing/checkouts/{checkout_id}", notice)


async def answer_checkout_status(visit: Visit) -> Response:
    """Answer the script of the waiting page."""
    _, checkout = await begun_checkouts.find(visit, visit.parameter("checkout_id"))
    return JSONResponse({"status": checkout.status}, headers={"cache-control": "no-store"})


async def _find_organization(visit: Visit, organization_id: str) -> Organization | None:
    return await visit.console.directory.find_organization(visit.signed_in.subject, visit.core, organization_id)


def _choose_key(visit: Visit, offer_id: str) -> str:
    """Return the idempotency key of an offer's button: that of the form that is shown again, or else a new one.

    The same key finishes a purchase of which no answer arrived.
    """
    is_again = visit.trouble is not None and visit.form.text("offer_id") == offer_id
    if visit.trouble is not None and is_again and visit.trouble.code not in _SPENT:
        return visit.form.text("idempotency_key")
    return base64url.encode(visit.console.entropy.take(_KEY_BYTES))


_BILLING: Final = "/organizations/{organization_id}/billing"
_CHECKOUT: Final = "/billing/checkouts/{checkout_id}"
routes: Final[list[Route]] = [
    page("/billing", show_return),
    page(f"{_CHECKOUT}/status", answer_checkout_status),
    form_page(_CHECKOUT, show_checkout, give_up_checkout),
    form_page(_BILLING, show_subscriptions, open_portal),
    form_page(f"{_BILLING}/offers", show_offers, begin_checkout),
]


_COUNTRY: Final = re.compile(r"[A-Z]{2}")
_NO_COUNTRIES: Final = frozenset({"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"})


@cache
def list_countries(language_code: str) -> list[tuple[str, str]]:
    """Return the code (ISO 3166-1) and the name of each country, in the order of the names."""
    names = Locale(language_code).territories
    countries = [(code, name) for code, name in names.items() if _COUNTRY.fullmatch(code) and code not in _NO_COUNTRIES]
    return sorted(countries, key=lambda country: unicodedata.normalize("NFD", country[1]).casefold())


_BAD_GATEWAY: Final = 502


def show_way_out(visit: Visit, kind: str, url: str, offer: Offer | None = None) -> Response:
    """Show the link to a provider's page, what is bought there, and where it leads; `kind` is "checkout" or "portal".

    An address that anybody on the way could read or replace is not shown.
    """
    # The card provider's pages have a fragment, which never leaves the browser.
    if not is_secure_url(url.partition("#")[0]):
        visit.trouble = make_trouble(_BAD_GATEWAY, "payment_address_refused", visit.language)
        return visit.page("failures/trouble.html")
    return visit.page("billing/way_out.html", kind=kind, url=url, offer=offer, host=urlsplit(url).netloc)
