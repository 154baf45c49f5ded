"""GET /v1/billing/checkouts/{checkout_id}."""

from support.billing.card_purchase import list_sessions
from support.billing.offers import make_card_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.tenancy.tenant import Tenant

PATH = "/v1/billing/checkouts"


async def make_checkout(tenant: Tenant, rival: Rival) -> dict[str, str]:
    offer_id = await make_card_offer(rival)
    answer = await tenant.api.post(PATH, params=tenant.query, json={"offer_id": offer_id})
    assert answer.status == 201, answer.body
    return dict(answer.json)


async def test_a_checkout_is_shown_without_its_page(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    made = await make_checkout(tenant, rival)

    shown = await tenant.api.get(f"{PATH}/{made['id']}", params=tenant.query)

    assert len(await list_sessions(card)) == 1
    assert shown.status == 200
    assert shown.json == {name: value for name, value in made.items() if name != "checkout_url"}


async def test_the_status_is_that_of_the_checkout(tenant: Tenant, rival: Rival, card: RunningSandbox) -> None:
    made = await make_checkout(tenant, rival)
    await rival.run("UPDATE checkouts SET status = 'completed', completed_at = now()")

    assert (await tenant.api.get(f"{PATH}/{made['id']}", params=tenant.query)).json["status"] == "completed"
    assert len(await card.calls("card")) == 1
