"""The form that issues Codes in a browser: its verdicts, and the requests that the browser keeps."""

import asyncio
import json
import re
from typing import Any

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import Page, Route, expect
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")

STORED = "Object.entries(localStorage).filter(([name]) => name.startsWith('soundmark.issuance.'))"


async def _issued(tenant: Tenant) -> list[str]:
    return [code["xr_id"] for code in await tenant.list_codes()]


async def _fill(page: Page, **changes: str) -> None:
    for name, value in {"issuer": "Radio Nordlicht", "url": "https://example.org/", "count": "2", **changes}.items():
        await page.fill(f"#field-{name}", value)


async def _kept(page: Page) -> list[dict[str, Any]]:
    return [json.loads(value) for _, value in await page.evaluate(STORED)]


async def _until_nothing_is_kept(page: Page) -> None:
    async with asyncio.timeout(15):
        while await _kept(page):  # noqa: ASYNC110 - the page's script, which runs after the page is shown, forgets it
            await asyncio.sleep(0.02)


async def test_a_verdict_is_shown_while_somebody_types(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, rival: Rival
) -> None:
    await tenant.make_quota(rival, 50)
    page = await served.open(f"{codes}/issue", clock.now())
    verdict = page.locator("#verdict")
    await expect(verdict).to_have_text("")

    await page.fill("#field-url", "https://example.org/")
    await expect(verdict).to_have_text("Ready to issue. 50 Codes are left this month.")
    await page.fill("#field-count", "51")
    await expect(verdict).to_have_attribute("data-would-issue", "no")
    await expect(verdict).to_contain_text("50 Codes are left this month.")
    await page.fill("#field-count", "50")
    await expect(verdict).to_have_attribute("data-would-issue", "yes")
    assert await _issued(tenant) == []
    assert await _kept(page) == [], "asking keeps nothing"


async def test_only_the_newest_question_is_answered(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    """The first verdict is held back until the second one is on the page."""
    page = await served.open(f"{codes}/issue", clock.now())
    held: list[Route] = []

    async def hold(route: Route) -> None:
        if "count=7" in str(route.request.post_data):
            held.append(route)
        else:
            await route.continue_()

    await page.route("**/issue/verdict", hold)
    async with page.expect_request("**/issue/verdict"):
        await _fill(page, count="7")
    async with page.expect_request("**/issue/verdict"):
        await page.fill("#field-count", "101")
        await page.fill("#field-count", "99")
    await expect(page.locator("#verdict")).to_have_attribute("data-would-issue", "yes")
    await held[0].abort()
    await expect(page.locator("#verdict")).to_have_attribute("data-would-issue", "yes")
    assert await _issued(tenant) == []


async def test_the_other_kind_of_intent_shows_its_own_fields(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    page = await served.open(f"{codes}/issue", clock.now())
    await expect(page.locator("#field-url")).to_be_visible()
    await expect(page.locator("#field-resource")).to_be_hidden()

    await page.check("#mode-json")
    await expect(page.locator("#field-url")).to_be_hidden()
    await page.fill("#field-issuer", "Radio Nordlicht")
    await page.fill("#field-type", "coupon")
    await page.fill("#field-action", "redeem")
    await page.fill("#field-resource", '{"number": 7}')
    await expect(page.locator("#verdict")).to_have_attribute("data-would-issue", "yes")
    await page.click("#issuance button:not([name])")

    await page.wait_for_url("**/codes/xr_*")
    await expect(page.locator("main")).to_contain_text('"number": 7')
    assert len(await _issued(tenant)) == 1


async def test_an_expiry_is_typed_in_the_time_zone_of_the_device(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    page = await served.open(f"{codes}/issue", clock.now(), timezone_id="Asia/Tokyo")
    await _fill(page, count="1", expires_at=f"{clock.now().year + 1}-06-01T08:00")

    await page.click("#issuance button:not([name])")

    await page.wait_for_url("**/codes/xr_*")
    [code] = await tenant.list_codes()
    assert code["expires_at"].endswith("-05-31T23:00:00.000Z")


async def test_a_request_is_kept_before_it_is_sent_and_until_its_answer_was_seen(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    """The answer is lost between the console and the browser; the Codes exist, and are found again."""
    served.browsing.tolerate("ERR_FAILED")
    page = await served.open(f"{codes}/issue", clock.now())
    await _fill(page)

    async def lose(route: Route) -> None:
        await route.fetch(max_redirects=0)
        await route.abort()

    await page.route("**/codes/issue", lose)
    async with page.expect_event("requestfailed", lambda request: request.url.endswith("/codes/issue")):
        await page.click("#issuance button:not([name])")
    await page.unroute("**/codes/issue")
    issued = await _issued(tenant)
    assert len(issued) == 2

    await page.goto(codes)
    [kept] = await _kept(page)
    assert sorted(kept) == ["begun_at", "body", "key", "person", "project", "route"]
    assert json.loads(kept["body"])["count"] == 2
    assert kept["route"] == "/v1/codes/batch"
    await expect(page.locator("#kept-requests")).to_contain_text("2 Codes, Radio Nordlicht")
    await page.click("#kept-requests form button")

    await expect(page.locator("h1")).to_have_text("2 Codes were issued.")
    await expect(page).not_to_have_url(re.compile("#"))  # The page's script has taken note of the answer.
    assert await _kept(page) == []
    assert await _issued(tenant) == issued, "asking issued nothing"
    await page.click("text=Open the list")
    await expect(page.locator("#kept-requests")).to_be_hidden()


async def test_a_request_that_core_did_not_answer_is_sent_again_and_issues_once(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    served.browsing.tolerate("status of 503")
    page = await served.open(f"{codes}/issue", clock.now())
    await _fill(page, count="1")
    for call in ("POST /v1/codes", "POST /v1/codes/recover"):
        served.client.core.lose_answer(call)
    await page.click("#issuance button:not([name])")
    await expect(page.locator("#unsettled")).to_be_visible()
    served.client.core.recover()
    assert len(await _kept(page)) == 1

    await page.click("#issuance button:not([name])")

    await page.wait_for_url("**/codes/xr_*")
    assert len(await _issued(tenant)) == 1
    await _until_nothing_is_kept(page)


async def test_a_refused_request_is_kept_no_longer(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, rival: Rival
) -> None:
    served.browsing.tolerate("status of 429")
    await tenant.make_quota(rival, 1)
    page = await served.open(f"{codes}/issue", clock.now())
    await _fill(page)

    await page.click("#issuance button:not([name])")

    await expect(page.locator("#trouble")).to_have_attribute("data-code", "quota_exceeded")
    await _until_nothing_is_kept(page)


async def test_requests_of_others_and_of_yesterday_are_not_offered(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    page = await served.open(codes, clock.now())
    body = json.dumps({"issuer": "Radio Nordlicht"})
    begun_at = clock.now().strftime("%Y-%m-%dT%H:%M:%S.000Z")
    whole = {
        "route": "/v1/codes",
        "body": body,
        "begun_at": begun_at,
        "person": "operator",
        "project": tenant.project_id,
    }
    for key, changes in {
        "kept": {},
        "another-person": {"person": "somebody"},
        "another-project": {"project": "prj_other"},
        "yesterday": {"begun_at": "2020-01-01T00:00:00.000Z"},
    }.items():
        value = json.dumps({**whole, "key": key, **changes})
        await page.evaluate(
            "([name, value]) => localStorage.setItem(name, value)", [f"soundmark.issuance.{key}", value]
        )
    await page.evaluate("localStorage.setItem('soundmark.issuance.broken', '{')")

    await page.goto(codes)

    assert await page.locator("#kept-requests li").count() == 1
    assert {kept["key"] for kept in await _kept(page)} == {"kept", "another-person", "another-project"}
    await page.click("#kept-requests li button[type=button]")
    await expect(page.locator("#kept-requests")).to_be_hidden()
    await page.goto(codes)
    await expect(page.locator("#kept-requests")).to_be_hidden()


@pytest.mark.parametrize("status", [None, 429], ids=["no answer", "a pause"])
async def test_nothing_is_sent_while_nothing_can_be_kept(
    served: ServedConsole, tenant: Tenant, codes: str, *, clock: FakeClock, status: int | None
) -> None:
    served.browsing.tolerate("ERR_FAILED|status of 429")
    page = await served.open(f"{codes}/issue", clock.now())
    await _fill(page)
    await page.route("**/issue/tuple", lambda route: route.fulfill(status=status) if status else route.abort())

    await page.click("#issuance button:not([name])")

    await expect(page.locator("#verdict")).to_contain_text("Nothing was sent.")
    assert await _issued(tenant) == []
    await page.unroute("**/issue/tuple")
    await page.click("#issuance button:not([name])")
    await page.wait_for_url("**/codes/issued?*")
    assert len(await _issued(tenant)) == 2


async def test_a_double_click_issues_once(served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock) -> None:
    page = await served.open(f"{codes}/issue", clock.now())
    await _fill(page, count="1")

    await page.dblclick("#issuance button:not([name])")

    await page.wait_for_url("**/codes/xr_*")
    assert len(await _issued(tenant)) == 1


async def test_a_refusal_goes_when_its_field_is_edited(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    served.browsing.tolerate("status of 422")
    page = await served.open(f"{codes}/issue", clock.now())
    await _fill(page, expires_at="2020-01-01T00:00")
    await page.click("#issuance button:not([name])")
    await expect(page.locator("#refused-expires_at")).to_be_visible()
    await expect(page.locator("#field-expires_at")).to_have_attribute("aria-invalid", "true")

    await page.click("text=1 week")

    await expect(page.locator("#refused-expires_at")).to_have_count(0)
    await expect(page.locator("#trouble")).to_have_count(0)
    await expect(page.locator("#field-expires_at")).not_to_have_attribute("aria-invalid", "true")
    await expect(page.locator("#verdict")).to_have_attribute("data-would-issue", "yes")
    assert await _issued(tenant) == []


async def test_the_form_shows_what_listeners_see_and_completes_the_address(
    served: ServedConsole, codes: str, clock: FakeClock
) -> None:
    page = await served.open(f"{codes}/issue", clock.now(), timezone_id="Asia/Tokyo")
    await expect(page.locator("#field-url")).to_be_focused()
    await expect(page.locator("#preview")).to_be_hidden()

    await page.keyboard.type("\u0430pple.com/tonight")
    await page.fill("#field-title", "<b>Tonight</b>")

    await expect(page.locator("#preview .host")).to_have_text("xn--pple-43d.com")
    await expect(page.locator("#preview .text")).to_have_text("/tonight")
    await expect(page.locator("#preview .title")).to_have_text("<b>Tonight</b>")
    await expect(page.locator("#field-url")).to_have_value("https://\u0430pple.com/tonight")
    await page.check("#mode-json")
    await expect(page.locator("#preview")).to_be_hidden()
