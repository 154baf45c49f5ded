"""The catalogue: payment providers, plans and offers."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal, cast

from soundmark_sdk.client.records import Catalog, CatalogOffer, Plan
from starlette.responses import Response

from soundmark.console.forms import FieldRefused, Form
from soundmark.console.parts import read_part
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

PATH: Final = "/platform/catalog"
# What would change the path of the call; Core judges every other spelling.
_NO_IDS: Final = frozenset({"", ".", ".."})


async def show_catalog(visit: Visit) -> Response:
    """Show everything that administrators decide about billing.

    The amount of a card price is the card provider's, and Core tells it of what is for sale alone.
    """
    catalog, offers = await asyncio.gather(visit.core.catalog.get(), read_part(visit.core.billing.offers()))
    for_sale = None if offers is None else {each.id: each for each in offers.data}
    return visit.page("platform/catalog.html", catalog=catalog, for_sale=for_sale)


async def switch_provider(visit: Visit) -> Response:
    """Put the offers of a payment provider on sale, or withdraw them."""
    provider, is_wanted = visit.parameter("provider"), visit.form.text("enabled") == "true"
    if provider not in {"card", "local"}:
        raise TenantUnknown
    await visit.core.catalog.put_provider(cast("Literal['card', 'local']", provider), enabled=is_wanted)
    return visit.redirect(PATH, "platform.provider_enabled" if is_wanted else "platform.provider_disabled")


async def show_plan(visit: Visit) -> Response:
    """Show the form of a plan: of a new one, or of the one that the URL names."""
    plan: Plan | None = None
    if plan_id := visit.query("plan_id"):
        plan = next((each for each in (await visit.core.catalog.get()).plans if each.plan_id == plan_id), None)
        if plan is None:
            raise TenantUnknown
    product = visit.query("product") if plan is None else plan.product
    return visit.page("platform/plan.html", plan=plan, product="audience" if product == "audience" else "codes")


async def put_plan(visit: Visit) -> Response:
    """Make or change a plan."""
    form, catalog = visit.form, visit.core.catalog
    plan_id, name, is_active = read_id(form, "plan_id"), form.text("name"), form.text("active") == "true"
    await refuse_taken(visit, "plan_id", plan_id, lambda found: [each.plan_id for each in found.plans])
    if form.text("product") == "audience":
        quota = form.integer("monthly_event_quota")
        await catalog.put_audience_plan(plan_id, name=name, monthly_event_quota=quota, active=is_active)
    else:
        quota = form.integer("monthly_code_quota")
        await catalog.put_codes_plan(plan_id, name=name, monthly_code_quota=quota, active=is_active)
    return visit.redirect(PATH, "platform.saved", id=plan_id)


async def show_offer(visit: Visit) -> Response:
    """Show the form of an offer: of a new one, or of the one that the URL names."""
    catalog = await visit.core.catalog.get()
    offer: CatalogOffer | None = None
    if offer_id := visit.query("offer_id"):
        offer = next((each for each in catalog.offers if each.offer_id == offer_id), None)
        if offer is None:
            raise TenantUnknown
    provider = visit.query("provider") if offer is None else offer.provider
    return visit.page(
        "platform/offer.html",
        offer=offer,
        provider="local" if provider == "local" else "card",
        plans=[(each.plan_id, f"{each.name} ({each.plan_id})") for each in catalog.plans],
    )


async def put_offer(visit: Visit) -> Response:
    """Make or change an offer."""
    form, catalog = visit.form, visit.core.catalog
    offer_id, plan_id, is_active = read_id(form, "offer_id"), form.text("plan_id"), form.text("active") == "true"
    await refuse_taken(visit, "offer_id", offer_id, lambda found: [each.offer_id for each in found.offers])
    if form.text("provider") == "local":
        await catalog.put_local_offer(
            offer_id,
            plan_id=plan_id,
            amount_minor=form.integer("amount_minor"),
            entitlement_months=form.integer("entitlement_months"),
            active=is_active,
        )
    else:
        price = form.text("price_reference")
        await catalog.put_card_offer(offer_id, plan_id=plan_id, price_reference=price, active=is_active)
    return visit.redirect(PATH, "platform.saved", id=offer_id)


async def refuse_taken(visit: Visit, name: str, value: str, list_ids: Callable[[Catalog], Sequence[str]]) -> None:
    """Refuse the form of a new entry whose id, in the field `name`, is that of one that is there: Core would change it.

    The URL of an entry's own form names the entry.

    Raises: FieldRefused.
    """
    if not visit.query(name) and value in list_ids(await visit.core.catalog.get()):
        raise FieldRefused(name, "platform.taken")


def read_id(form: Form, name: str) -> str:
    """Return an id that a person typed.

    Raises: FieldRefused.
    """
    typed = form.text(name)
    if typed in _NO_IDS:
        raise FieldRefused(name, "platform.id_missing")
    return typed
