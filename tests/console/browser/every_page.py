"""A fixture of every page of the console, for the tests that sweep over them."""

import asyncio
from urllib.parse import urlsplit

import pytest
from console.test_links import FILE
from console.webhooks.conftest import consumer as consumer
from console.webhooks.conftest import steps as steps
from console.webhooks.test_deliveries import make_deliveries
from core.webhooks.delivery.conftest import Steps
from playwright.async_api import Page
from support.audience.measured_tenant import measure_tenant
from support.audience.recorded_events import RecordedEvent, store_events
from support.billing.card_purchase import begin_purchase
from support.billing.catalog import LOCAL_OFFER, sell
from support.billing.offers import make_card_subscription
from support.console.page_paths import list_paths
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.release_evidence import insert_evidence
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import WebhookConsumer

from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def every_path(
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    desk: RunningSandbox,
    steps: Steps,
    consumer: WebhookConsumer,
    clock: FakeClock,
    beside_core_url: Secret,
) -> list[str]:
    """Every page of the console, with something on each."""
    measured = await measure_tenant(tenant, beside_core_url)
    now = clock.now()
    events = [RecordedEvent(now, token, measured.alone["xr_id"], None, "tablet", "FR") for token in range(20)]
    await asyncio.to_thread(store_events, beside_core_url, measured.integration["id"], events)
    key = await tenant.make_key(name="Playout")
    await tenant.make_invitation()
    await tenant.make_pack(measured.campaign["id"])
    await sell(tenant.api, "offer_prepaid", LOCAL_OFFER)
    await make_card_subscription(rival, tenant.organization_id)
    purchase = await begin_purchase(tenant, rival, card)
    ticket = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert (ticket.status, (await desk.look("desk"))["conversations"] == []) == (201, False)
    endpoint = await make_deliveries(tenant, steps, rival, consumer, ["Ours"])
    await insert_evidence(rival, now)
    for status in ("failed", "todo"):
        await rival.run(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, status, attempts) VALUES ('default', 'x', %s, 1)",
            status,
        )
    reported = {"token": measured.alone["broadcast_token"], "category": "malware", "text": "A listener's words."}
    assert (await tenant.api.other(token=None).post("/v1/abuse-reports", json=reported)).status == 202
    ids = {
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "suspended_id": tenant.organization_id,
        "campaign_id": measured.campaign["id"],
        "xr_id": measured.in_campaign["xr_id"],
        "api_key_id": key["id"],
        "endpoint_id": endpoint["id"],
        "integration_id": measured.integration["id"],
        "ticket_id": ticket.json["id"],
        "checkout_id": purchase.checkout_id,
        "event_id": consumer.messages[0].id,
        "name": "smtp_password",
        "system": "smtp",
    }
    at = f"/organizations/{tenant.organization_id}"
    codes = f"{at}/projects/{tenant.project_id}/codes"
    return [
        *list_paths(ids),
        *(f"/search?organization_id={tenant.organization_id}&q=playout", "/platform/jobs?state=retrying"),
        *(f"{at}/members/remove?subject_id=somebody", f"{at}/webhooks/new?event_type=code.issued"),
        *(f"/platform/catalog/{each}" for each in ("plan", "offer?provider=local", "offer?provider=card")),
        f"{codes}/revoke?xr_ids={measured.alone['xr_id']}",
    ]


async def open_page(page: Page, path: str) -> bool:
    """Go to a path, and return whether it is a page that shows what it is about: some need what nothing here has."""
    if FILE.search(urlsplit(path).path):
        return False
    answer = await page.goto(path)
    assert answer is not None
    return answer.status == 200 and "text/html" in answer.headers["content-type"]
