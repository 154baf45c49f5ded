"""What is for sale, what an organisation has bought already, and the country in which a person buys."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import Offer, Subscription
from starlette.responses import Response

from soundmark.console.lookups import list_entitling
from soundmark.console.parts import read_part
from soundmark.console.visit import Visit

_COUNTRY: Final = "country"
_COUNTRY_KEPT_S: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class ShownOffer:
    """An offer, and what its page has in place of a button: the plan that is bought already, or the way to change it.

    `act` is "extend" for another period of a prepaid plan that the organisation has.
    """

    offer: Offer
    act: Literal["buy", "extend", "own", "portal"]


async def list_offers(visit: Visit, country: str | None) -> list[ShownOffer]:
    """Return what is for sale in a country, or everywhere, by what the organisation has.

    Raises: soundmark_sdk.ClientFailure.
    """
    offers, subscriptions = await asyncio.gather(
        visit.core.billing.offers(country=country), _list_live_subscriptions(visit)
    )
    return [ShownOffer(each, _choose_act(each, subscriptions)) for each in offers.data]


async def find_offer(visit: Visit, offer_id: str) -> Offer | None:
    """Return an offer, or None if it is no longer for sale or cannot be read."""
    offers = await read_part(visit.core.billing.offers())
    return None if offers is None else next((each for each in offers.data if each.id == offer_id), None)


def read_country(visit: Visit) -> str | None:
    """Return the country in the URL, or else the one that was chosen last in this browser."""
    if _COUNTRY in visit.request.query_params:
        return visit.query(_COUNTRY)
    remembered = visit.console.jar.read(_COUNTRY, visit.request.cookies)
    return remembered if isinstance(remembered, str) and remembered else None


def remember_country(visit: Visit, response: Response) -> None:
    """Keep the country in the URL in this browser; an empty one means all countries."""
    if _COUNTRY in visit.request.query_params:
        chosen = (visit.query(_COUNTRY) or "")[:2]
        visit.console.jar.write(response, _COUNTRY, chosen, max_age_s=_COUNTRY_KEPT_S)


async def _list_live_subscriptions(visit: Visit) -> list[Subscription]:
    try:
        subscriptions = await visit.core.subscriptions.page()
    except ApiProblem as problem:
        if problem.status == HTTPStatus.FORBIDDEN:
            return []  # Everybody may see what is for sale.
        raise
    return list_entitling(subscriptions.data)


def _choose_act(offer: Offer, subscriptions: Sequence[Subscription]) -> Literal["buy", "extend", "own", "portal"]:
    """Return what a person can do: a second card subscription of a product is refused until the first one ends."""
    rivals = [each for each in subscriptions if each.product == offer.plan.product and each.provider == offer.provider]
    is_own = any(each.plan_id == offer.plan.id for each in rivals)
    if offer.provider == "local":
        return "extend" if is_own else "buy"
    if all(each.cancel_at_period_end for each in rivals):
        return "buy"
    return "own" if is_own else "portal"
