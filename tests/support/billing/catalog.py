"""The catalogue as platform administrators keep it, and offers as customers see them."""

from typing import Any, Final

from support.api.core_client import Answer, Api
from support.billing.card_purchase import put_object
from support.outside.running_sandbox import RunningSandbox

ADMIN: Final = "/v1/billing/admin"
CODES_PLAN: Final = {"name": "Codes Studio", "product": "codes", "monthly_code_quota": 5000, "active": True}
AUDIENCE_PLAN: Final = {"name": "Audience Plus", "product": "audience", "monthly_event_quota": 50_000, "active": True}
CARD_OFFER: Final = {
    "plan_id": "plan_codes_starter",
    "provider": "card",
    "active": True,
    "price_reference": "price_1PlantedMarker",
}
LOCAL_OFFER: Final = {
    "plan_id": "plan_codes_starter",
    "provider": "local",
    "active": True,
    "country": "TN",
    "currency": "TND",
    "amount_minor": 149_000,
    "entitlement_months": 1,
}


async def put_provider(api: Api, provider: str, *, enabled: bool = True) -> Answer:
    return await api.put(f"{ADMIN}/providers/{provider}", json={"enabled": enabled})


async def put_plan(api: Api, plan_id: str, body: Any) -> Answer:
    return await api.put(f"{ADMIN}/plans/{plan_id}", json=body)


async def put_offer(api: Api, offer_id: str, body: Any) -> Answer:
    return await api.put(f"{ADMIN}/offers/{offer_id}", json=body)


async def read_catalog(api: Api) -> dict[str, Any]:
    answer = await api.get(f"{ADMIN}/catalog")
    assert answer.status == 200, answer.body
    return dict(answer.json)


async def list_offers(api: Api, **query: str) -> list[dict[str, Any]]:
    answer = await api.get("/v1/billing/offers", params=query)
    assert answer.status == 200, answer.body
    assert answer.json.keys() == {"data"}
    return list(answer.json["data"])


async def add_price(card: RunningSandbox, reference: str = "price_1PlantedMarker", **changes: Any) -> None:
    """Let the card provider have an active price of 49 euros a month, except for `changes`."""
    price = await card.control("/card/prices", id=reference, unit_amount=4900)
    await put_object(card, f"/v1/prices/{reference}", {**price, **changes})


async def sell(api: Api, offer_id: str, body: Any) -> dict[str, Any]:
    """Put an offer on sale, and return it as customers see it."""
    assert (await put_provider(api, body["provider"])).status == 200
    answer = await put_offer(api, offer_id, body)
    assert answer.status == 200, answer.body
    return next(offer for offer in await list_offers(api) if offer["id"] == offer_id)
