"""Billing, support, webhooks and the platform in a browser: the rules of axe, the waiting page, and a double click."""

import asyncio

import pytest
from console.browser.conftest import ServedConsole
from console.webhooks.conftest import consumer as consumer
from console.webhooks.conftest import steps as steps
from console.webhooks.test_deliveries import make_deliveries
from core.webhooks.delivery.conftest import Steps
from playwright.async_api import expect
from support.billing.card_purchase import begin_purchase, list_sessions
from support.billing.catalog import AUDIENCE_PLAN, LOCAL_OFFER, put_plan, sell
from support.billing.offers import make_card_offer, make_card_subscription
from support.browser.accessibility import assert_no_page_breaks_a_rule, find_broken_on_screens
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.release_evidence import insert_evidence
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import WebhookConsumer

pytestmark = pytest.mark.xdist_group("browser")

LONG = "Nordlicht" * 12
NOTE_PAUSES = """
window.pauses = [];
const setTimeoutOfBrowser = window.setTimeout;
window.setTimeout = (act, pause) => { window.pauses.push(pause); return setTimeoutOfBrowser(act, pause); };
"""


@pytest.fixture
async def paths(
    tenant: Tenant,
    rival: Rival,
    card: RunningSandbox,
    desk: RunningSandbox,
    steps: Steps,
    consumer: WebhookConsumer,
    clock: FakeClock,
) -> list[str]:
    """All pages of these areas, with something on each."""
    at = f"/organizations/{tenant.organization_id}"
    await sell(tenant.api, "offer_prepaid", LOCAL_OFFER)
    assert (await put_plan(tenant.api, "plan_long", {**AUDIENCE_PLAN, "name": LONG})).status == 200
    await make_card_subscription(rival, tenant.organization_id)
    purchase = await begin_purchase(tenant, rival, card)
    ticket = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body(subject=LONG, message=LONG))
    assert (ticket.status, (await desk.look("desk"))["conversations"] == []) == (201, False)
    endpoint = await make_deliveries(tenant, steps, rival, consumer, [LONG])
    webhook = f"{at}/webhooks/{endpoint['id']}"
    await insert_evidence(rival, clock.now())
    for status in ("failed", "todo"):
        await rival.run(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, status, attempts) VALUES ('default', 'x', %s, 1)",
            status,
        )
    catalog = "/platform/catalog"
    return [
        *("/billing", f"/billing/checkouts/{purchase.checkout_id}", f"{at}/billing", f"{at}/billing/offers"),
        *(f"{at}/tickets", f"{at}/tickets/new", f"{at}/tickets/{ticket.json['id']}"),
        *(f"{at}/webhooks", f"{at}/webhooks/new", webhook, f"{webhook}/deliveries", f"{webhook}/replay"),
        *(f"{webhook}/delete", f"{at}/webhooks/events/{consumer.messages[0].id}"),
        *("/platform", "/platform/readiness", "/platform/secrets/smtp_password", catalog, f"{catalog}/contract"),
        *("/platform/systems/smtp", "/platform/jobs", "/platform/jobs?state=retrying"),
        *(f"{catalog}/plan?plan_id=plan_long", f"{catalog}/offer?provider=local", f"{catalog}/customer"),
    ]


async def test_no_page_breaks_a_rule(served: ServedConsole, paths: list[str], clock: FakeClock) -> None:
    await assert_no_page_breaks_a_rule(served.opener(clock.now()), paths)


async def test_the_focus_goes_to_what_a_test_found(served: ServedConsole, clock: FakeClock) -> None:
    page = await served.open("/platform", clock.now())

    await page.get_by_role("button", name="Test Card payments").click()

    await expect(page.locator("#tested")).to_be_focused()
    await expect(page.locator("#tested")).to_have_text("The card provider is not configured: settings are missing.")
    assert await find_broken_on_screens(page) == {}


async def test_a_double_click_buys_once_and_shows_the_way_out(
    served: ServedConsole, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    await make_card_offer(rival)
    page = await served.open(f"/organizations/{tenant.organization_id}/billing/offers", clock.now())

    await page.dblclick("text=Buy Studio")

    await page.wait_for_selector("text=Continue to the payment page")
    link = page.get_by_role("link", name="Continue to the payment page")
    assert str(await link.get_attribute("href")).startswith(f"{card.url}/card/pay/")
    assert len(await list_sessions(card)) == 1
    [(checkouts,)] = await rival.rows("SELECT count(*) FROM checkouts")
    assert checkouts == 1


async def test_the_waiting_page_sees_the_payment_by_itself(
    served: ServedConsole, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    page = await served.open("/organizations", clock.now())
    await page.clock.install()
    await page.goto(f"/billing/checkouts/{purchase.checkout_id}")
    await expect(page.get_by_text("This page checks for the confirmation automatically.")).to_be_visible()

    async with page.expect_response("**/status") as asked:
        await page.clock.run_for(2_000)
    assert await (await asked.value).json() == {"status": "pending"}
    await rival.run("UPDATE checkouts SET status = 'completed', reread_at = NULL, completed_at = now()")
    async with page.expect_navigation():
        await page.clock.resume()

    await expect(page.get_by_text("The payment is confirmed")).to_be_visible()
    assert await page.query_selector("#waiting") is None


async def test_the_waiting_page_asks_less_and_less_and_stops(
    served: ServedConsole, tenant: Tenant, rival: Rival, card: RunningSandbox, clock: FakeClock
) -> None:
    purchase = await begin_purchase(tenant, rival, card)
    page = await served.open("/organizations", clock.now())
    await page.clock.install()
    await page.add_init_script(NOTE_PAUSES)
    await page.goto(f"/billing/checkouts/{purchase.checkout_id}")
    stopped = page.get_by_text("This page has stopped checking automatically.")

    pauses_ms: list[float] = await page.evaluate("window.pauses")
    async with asyncio.timeout(30):
        while pauses_ms and not await stopped.is_visible():
            async with page.expect_response("**/status"):
                await page.clock.fast_forward(pauses_ms[-1])
            # The page has read the answer when it begins the next pause or says that it stops.
            seen = len(pauses_ms)
            while len(pauses_ms) == seen and not await stopped.is_visible():
                pauses_ms = await page.evaluate("window.pauses")

    assert pauses_ms[:4] == [2_000, 3_000, 4_500, 6_750]
    assert pauses_ms == sorted(pauses_ms)
    assert pauses_ms[-1] == 30_000
    assert sum(pauses_ms) < 15 * 60 * 1000
    await page.clock.run_for(120_000)
    assert await page.evaluate("window.pauses.length") == len(pauses_ms)
    assert await page.get_by_role("link", name="Check again").is_visible()


async def test_a_ticket_is_sent_with_the_keyboard_alone(
    served: ServedConsole, tenant: Tenant, desk: RunningSandbox, clock: FakeClock
) -> None:
    page = await served.open(f"/organizations/{tenant.organization_id}/tickets/new", clock.now())
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await page.keyboard.type("No sound")
    await page.keyboard.press("Tab")
    await page.keyboard.type("It is quiet.\nWhy?")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")

    await page.wait_for_selector("article")
    await page.wait_for_load_state("load")  # The style sheet keeps the line break.
    assert await page.inner_text("article p") == "It is quiet.\nWhy?"
    assert len((await desk.look("desk"))["conversations"]) == 1


async def test_the_types_of_events_are_shown_only_where_some_are_chosen(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open(f"/organizations/{tenant.organization_id}/webhooks/new", clock.now())

    assert not await page.is_visible("#field-event_types")
    await page.select_option("#field-which", "chosen")
    assert await page.is_visible("#field-event_types")
