"""Webhooks are really sent: in order, again after a refusal, and held, doubled or reordered on command."""

import json

import pytest
import stripe
from support.outside.card_sdk import create_session
from support.outside.running_sandbox import RunningSandbox, running_sandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import served_in_thread
from support.webhooks.received_webhooks import ReceivedWebhooks

PURCHASE = ["customer.subscription.created", "invoice.paid", "checkout.session.completed"]


async def buy(sandbox: RunningSandbox) -> None:
    session = await create_session(sandbox)
    await sandbox.control(f"/card/sessions/{session.id}/pay")


def types(core: ReceivedWebhooks) -> list[str]:
    return [json.loads(request.body)["type"] for request in core.requests]


async def test_webhooks_travel_over_a_real_connection() -> None:
    core = ReceivedWebhooks()
    with served_in_thread(core) as core_url:
        async with running_sandbox(core_url=core_url) as sandbox:
            await buy(sandbox)
            webhooks = await sandbox.settle()
    assert types(core) == PURCHASE
    assert [(each["state"], each["attempts"]) for each in webhooks] == [("delivered", ["200"])] * 3


async def test_a_refused_webhook_is_sent_again_with_a_new_signature(
    sandbox: RunningSandbox, core: ReceivedWebhooks, clock: FakeClock
) -> None:
    clock.freeze()
    core.statuses = [503]
    await sandbox.control("/card/events", type="invoice.paid", object={"object": "invoice"})
    (webhook,) = await sandbox.settle()
    assert (webhook["state"], webhook["attempts"]) == ("delivered", ["503", "200"])
    first, second = core.requests
    assert first.body == second.body
    secret = sandbox.secret("CARD_WEBHOOK_SECRET")
    for request in (first, second):
        assert stripe.Webhook.construct_event(request.body, request.headers["stripe-signature"], secret)


async def test_a_webhook_that_nobody_takes_fails(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    core.statuses = [500, 301]
    await sandbox.control("/card/events", type="invoice.paid", object={"object": "invoice"})
    (webhook,) = await sandbox.settle()
    assert (webhook["state"], webhook["attempts"]) == ("failed", ["500", "301"])
    await sandbox.control(f"/webhooks/{webhook['id']}/send")
    (webhook,) = await sandbox.settle()
    assert (webhook["state"], webhook["attempts"]) == ("delivered", ["500", "301", "200"])


async def test_a_core_that_is_not_there_is_tried_again() -> None:
    async with running_sandbox(core_url="http://127.0.0.1:9", retry_pauses_s=(0.01,)) as sandbox:
        await sandbox.control("/card/events", type="invoice.paid", object={"object": "invoice"})
        (webhook,) = await sandbox.settle()
    assert (webhook["state"], webhook["attempts"]) == ("failed", ["ConnectError", "ConnectError"])


async def test_without_a_core_webhooks_are_kept_and_not_sent() -> None:
    async with running_sandbox() as sandbox:
        await buy(sandbox)
        webhooks = await sandbox.settle()
        assert [each["state"] for each in webhooks] == ["held"] * 3
        refused = await sandbox.client.post(f"/control/webhooks/{webhooks[0]['id']}/send", json={})
        assert refused.status_code == 404


async def test_held_webhooks_are_sent_in_any_order(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await sandbox.control("/webhooks/hold", system="card")
    await buy(sandbox)
    webhooks = await sandbox.settle()
    assert core.requests == []
    await sandbox.control(f"/webhooks/{webhooks[2]['id']}/send")
    await sandbox.settle()
    await sandbox.control("/webhooks/release", system="card")
    await sandbox.settle()
    assert types(core) == ["checkout.session.completed", "customer.subscription.created", "invoice.paid"]


async def test_the_page_holds_and_releases(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    held = await sandbox.client.post("/control/webhooks/hold", data={"system": "card", "back": "/deliveries"})
    assert held.headers["location"] == "/deliveries"
    await buy(sandbox)
    page = (await sandbox.client.get("/deliveries")).text
    assert "Send what card holds" in page
    assert "checkout.session.completed" in page
    await sandbox.client.post("/control/webhooks/release", data={"system": "card", "back": "/deliveries"})
    await sandbox.settle()
    assert types(core) == PURCHASE


async def test_a_duplicate_is_the_same_event_twice(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await sandbox.misbehave("card", "duplicate_webhook", operation="invoice.paid")
    await buy(sandbox)
    await sandbox.settle()
    assert types(core) == [PURCHASE[0], PURCHASE[1], PURCHASE[1], PURCHASE[2]]
    assert core.requests[1].body == core.requests[2].body


async def test_reordered_webhooks_come_the_newest_first(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await sandbox.misbehave("card", "reordered_webhooks", times=3, seconds=0.05)
    await buy(sandbox)
    await sandbox.settle()
    assert types(core) == PURCHASE[::-1]


async def test_an_event_can_be_sent_again(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await buy(sandbox)
    events = (await sandbox.look("card"))["events"]
    await sandbox.control(f"/card/events/{events[0]['id']}/send")
    await sandbox.settle()
    assert types(core) == [*PURCHASE, "checkout.session.completed"]


async def test_webhooks_can_go_elsewhere(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await sandbox.control("/card/settings", webhook_url="http://core.test/elsewhere")
    await buy(sandbox)
    await sandbox.settle()
    assert {request.path for request in core.requests} == {"/elsewhere"}


@pytest.mark.parametrize("path", ["/control/webhooks/dlv_unknown/send", "/control/card/events/evt_unknown/send"])
async def test_an_unknown_webhook_is_404(sandbox: RunningSandbox, path: str) -> None:
    assert (await sandbox.client.post(path, json={})).status_code == 404
