"""Providers that do not answer in time: the answer is 503 at the deadline, and nobody else waits for them."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.billing.card_purchase import WEBHOOK_SECRET, begin_purchase, deliver
from support.billing.local_purchase import begin_local_purchase, notify_of
from support.billing.offers import CARD_OFFER, LOCAL_OFFER
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.running_apps import running_core
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.providers.flouci.client import LocalProvider
from soundmark.core.providers.stripe.client import CardProvider
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def card(card: RunningSandbox, api: Api) -> RunningSandbox:
    """The card provider, whose webhook secret Core knows too."""
    assert (await put_setting(api, "card_webhook_secret", WEBHOOK_SECRET)).status == 200
    return card


async def buy(tenant: Tenant, offer_id: str) -> Answer:
    return await tenant.api.post("/v1/billing/checkouts", params=tenant.query, json={"offer_id": offer_id})


async def ask_everybody(tenant: Tenant, rival: Rival, card: RunningSandbox, local: RunningSandbox) -> list[Any]:
    """Begin each request that asks a provider, which is slow; return their tasks."""
    by_card, locally = await begin_purchase(tenant, rival, card), await begin_local_purchase(tenant, rival, local)
    await card.hold("card", times=2)
    await local.hold("local", times=2)
    asking = [
        deliver(tenant.api, by_card.event("invoice.paid")),
        notify_of(tenant.api, locally),
        buy(tenant, CARD_OFFER),
        buy(tenant, LOCAL_OFFER),
    ]
    return [asyncio.create_task(each) for each in asking]


async def test_other_requests_go_on_while_every_provider_is_slow(
    tenant: Tenant, rival: Rival, card: RunningSandbox, local: RunningSandbox
) -> None:
    """The provider lets go only after the others were answered, by the same process."""
    asking = await ask_everybody(tenant, rival, card, local)
    await card.until_held("card", 2)
    await local.until_held("local", 2)

    code = await tenant.make_code()
    resolved = await tenant.api.resolve(code["broadcast_token"])
    listed = await tenant.api.get("/v1/billing/subscriptions", params=tenant.query)
    assert (resolved.status, listed.status, listed.json["data"]) == (200, 200, [])
    await card.release("card")
    await local.release("local")

    answers = [await each for each in asking]
    assert [answer.status for answer in answers] == [200, 200, 201, 201]


async def test_at_the_deadline_the_answer_is_503_and_what_was_paid_stays_pending(
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    local: RunningSandbox,
    database_url: Secret,
    outside_urls: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten seconds by default; here less, and the providers never answer."""
    for client in (CardProvider, LocalProvider):
        assert client.__init__.__kwdefaults__["timeout_s"] == 10.0
        monkeypatch.setitem(client.__init__.__kwdefaults__, "timeout_s", 0.3)
    async with running_core(core_settings(database_url, **outside_urls), tenant.api.clock) as core:
        asking = await ask_everybody(Tenant(core, tenant.organization_id, tenant.project_id), rival, card, local)
        async with asyncio.timeout(30):
            answers = [await each for each in asking]

    assert {(answer.status, answer.code) for answer in answers} == {(503, "payment_provider_unavailable")}
    assert await rival.rows("SELECT provider, status FROM payment_receipts ORDER BY provider") == [
        ("card", "pending"),
        ("local", "pending"),
    ]
    statuses = await rival.rows("SELECT status, count(*) FROM checkouts GROUP BY status ORDER BY status")
    assert statuses == [("failed", 2), ("pending", 2)]
    assert await rival.rows("SELECT 1 FROM subscriptions") == []
