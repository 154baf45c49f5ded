"""Forms that change something, under what people do to them: a double click, the back button, and a second tab."""

from dataclasses import dataclass

import pytest
from console.browser.conftest import ServedConsole
from console.platform.test_jobs_page import insert_job
from playwright.async_api import Page, expect
from support.billing.offers import CARD_OFFER, make_card_offer
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.console.session import Session

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("card")]

_MESSAGE = "<b>It is on.</b>"


@dataclass(frozen=True)
class Form:
    """A form's page and button, the call that it makes, and what the page says afterwards."""

    path: str
    button: str
    call: tuple[str, str]
    done: str
    has_message: bool = False

    async def fill(self, page: Page) -> None:
        """Open the page, and write what there is to write."""
        await page.goto(self.path)
        if self.has_message:
            await page.get_by_label("Message").fill(_MESSAGE)

    def count(self, served: ServedConsole) -> int:
        """Return how often the console made the call."""
        return sum((each.method, each.url.path) == self.call for each in served.client.core.calls)


@pytest.fixture
async def forms(tenant: Tenant, rival: Rival, desk: RunningSandbox) -> list[Form]:
    """The reply to a ticket, a purchase to give up, a failed job, and the test of a system."""
    await make_card_offer(rival)
    begun = await tenant.api.post("/v1/billing/checkouts", params=tenant.query, json={"offer_id": CARD_OFFER})
    purchase = f"/billing/checkouts/{begun.json['id']}"
    ticket = (await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())).json["id"]
    assert (await desk.look("desk"))["conversations"] != []
    job_id = await insert_job(rival, "forget_mail_counts")
    replies = ("POST", f"/v1/support/tickets/{ticket}/messages")
    cancellation = ("POST", f"/v1{purchase}/cancel")
    at = f"/organizations/{tenant.organization_id}"
    return [
        Form(
            purchase,
            "Give up this purchase",
            cancellation,
            "The purchase has ended",
        ),
        Form("/platform/jobs", "Run again", ("POST", f"/v1/platform/jobs/{job_id}/retry"), "runs again within seconds"),
        Form("/platform", "Test Accounting", ("POST", "/v1/platform/systems/accounting/test"), "settings are missing"),
        Form(f"{at}/tickets/{ticket}", "Send", replies, "Your reply was sent.", has_message=True),
    ]


async def test_a_double_click_sends_a_form_once_and_the_way_back_shows_a_page_that_works(
    served: ServedConsole, forms: list[Form], clock: FakeClock
) -> None:
    page = await served.open("/organizations", clock.now())
    for form in forms:
        await form.fill(page)
        await page.get_by_role("main").get_by_role("button", name=form.button).dblclick()
        await expect(page.get_by_role("main")).to_contain_text(form.done)
        assert form.count(served) == 1, form
        await expect(page.locator("main b")).to_have_count(0)

        await page.go_back()

        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.locator("#awaited")).to_be_hidden()
        assert form.count(served) == 1, "going back sends nothing"


async def test_a_form_whose_session_ended_in_another_tab_changes_nothing_and_keeps_what_was_typed(
    served: ServedConsole, forms: list[Form], clock: FakeClock
) -> None:
    served.browsing.tolerate("status of 40[13]")
    first = await served.open("/organizations", clock.now())
    tabs = [(form, await first.context.new_page()) for form in forms]
    for form, tab in tabs:
        await form.fill(tab)
    await first.locator("details.menu > summary", has_text="operator@localhost").click()
    await first.get_by_role("button", name="Sign out").click()
    await expect(first.get_by_role("heading", level=1)).to_have_text("You are signed out")

    for form, tab in tabs:
        await tab.get_by_role("main").get_by_role("button", name=form.button).click()
        await expect(tab.locator("#trouble")).to_contain_text("Your session has ended")
        assert form.count(served) == 0, form

    person = ("operator", "operator", "operator@localhost", "another-token")
    served.client.sign_in(Session(*person, clock.now(), has_second_factor=True))
    cookies = [(each.name, str(each.value)) for each in served.client.cookies.jar]
    await first.context.add_cookies([{"name": name, "value": value, "url": served.url} for name, value in cookies])
    for form, tab in tabs:
        if form.has_message:  # The browser keeps the first form, so this one has stayed in its page.
            await tab.get_by_role("button", name="I have signed in: continue").click()
            await expect(tab.get_by_label("Message")).to_have_value(_MESSAGE)
        else:
            await tab.goto(form.path)
        await expect(tab.get_by_role("main").get_by_role("button", name=form.button)).to_be_visible()
