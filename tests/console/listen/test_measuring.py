"""Measuring on the page: off until the person agrees, and never without their consent."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Locator, Page, Route, expect
from soundmark_sdk.publisher import AsyncPublisher, Backend, ReportingTokens, WebPages
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route as WebRoute
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page
from support.codes.signed_answers import GENUINE, MEASURED, VECTORS
from support.processes.running_apps import served_in_thread

pytestmark = pytest.mark.xdist_group("browser")

INTEGRATION_ID: Final = MEASURED["answer"]["policy"]["audience_integration_id"]
READ_RECORD: Final = "import('/static/js/listen/consent_store.js').then((store) => store.readRecord())"
HMAC_SECRET: Final = "xhm_" + "m" * 43
REPORTING_KEY: Final = b"a reporting key of the tests, which has more than 32 bytes"


@dataclass
class Audience:
    """What stands in for Audience: it records the events that the publisher forwards."""

    events: list[dict[str, Any]] = field(default_factory=list)

    def app(self) -> Starlette:
        async def record(request: Request) -> JSONResponse:
            event = json.loads(await request.body())
            is_new = event not in self.events
            self.events.append(event)
            body = {"event_id": event["event_id"], "status": "recorded" if is_new else "duplicate"}
            return JSONResponse(body, 201 if is_new else 200)

        return Starlette(routes=[WebRoute("/v1/events", record, methods=["POST"])])


@pytest.fixture
def audience() -> Audience:
    """What Audience received from the page."""
    return Audience()


@pytest.fixture
def measuring_url(
    audience: Audience, stand_in: Any, serve_console: Callable[..., AbstractContextManager[str]]
) -> Iterator[str]:
    """The listening page of a console with a publisher, which is the SDK's reference backend."""
    stand_in.keys = VECTORS["keys"]
    stand_in.answers[MEASURED["token"]] = MEASURED["answer"]
    with served_in_thread(audience.app()) as audience_url:
        tokens = ReportingTokens(REPORTING_KEY, INTEGRATION_ID)
        backend = Backend(AsyncPublisher(audience_url, INTEGRATION_ID, HMAC_SECRET), tokens)
        origins: list[str] = []

        async def publisher(scope: Any, receive: Any, send: Any) -> None:
            # Its origins are known once the console serves, whose policy names this address.
            await WebPages(backend, tokens, origins)(scope, receive, send)

        with (
            served_in_thread(publisher) as publisher_url,
            serve_console(stand_in.url, publisher_url=publisher_url, publisher_integration_id=INTEGRATION_ID) as url,
        ):
            origins.append(url)
            yield f"{url}/listen"


async def open_at(browsing: Browsing, url: str) -> Page:
    page = await browsing.open_page()
    await page.clock.set_fixed_time(MEASURED["now"])
    await open_listening_page(page, url)
    return page


async def hear_again(page: Page, sound: Any) -> Locator:
    """Reload the page and hear the Code again: what is on the page is not measured twice."""
    await page.reload()
    await expect(page.locator("#listen[data-ready]")).to_be_attached()
    return await choose(page, sound)


async def choose(page: Page, sound: Any) -> Locator:
    await page.locator("#file").set_input_files(sound)
    measured = page.locator("[data-slot=measured]:not([data-state=sending])")
    await expect(page.locator("#heard article")).to_have_attribute("data-outcome", "verified")
    return measured


async def test_without_consent_no_event_is_made(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    await expect(page.get_by_role("checkbox")).not_to_be_checked()
    measured = await choose(page, write_sound(MEASURED["token"]))
    await expect(measured).to_contain_text("You did not agree, so nothing was sent")
    assert audience.events == []
    assert [url for url in requests if "reporting-tokens" in url or "events" in url] == []
    stores = await page.evaluate("indexedDB.databases().then((found) => found.map(({ name }) => name).sort())")
    assert stores == ["soundmark-listen", "soundmark-packs"]
    assert await page.evaluate(READ_RECORD) is None


async def until_consent_is(page: Page, *, kept: bool) -> None:
    """Wait until the browser has stored or forgotten the consent, which a reload would otherwise overtake."""
    for _ in range(100):
        if (await page.evaluate(READ_RECORD) is not None) == kept:
            return
        await page.wait_for_timeout(50)
    raise AssertionError("the browser did not store the choice")


async def test_with_consent_the_event_of_the_contract_arrives_and_withdrawal_forgets_the_device(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    sound = write_sound(MEASURED["token"])
    await page.get_by_role("checkbox").press("Space")
    await until_consent_is(page, kept=True)
    await expect(await choose(page, sound)).to_contain_text("this device was counted")
    (event,) = audience.events
    assert set(event) == {
        *("event_id", "integration_id", "xr_id", "occurred_at", "receiver_class", "measurement_token"),
        *("country", "proof"),
    }
    assert (event["integration_id"], event["xr_id"]) == (INTEGRATION_ID, MEASURED["answer"]["xr_id"])
    assert event["proof"] == MEASURED["answer"]["measurement_proof"]
    assert (event["receiver_class"], event["country"]) == ("computer", None)

    # The consent is kept, and the token is the same all day.
    await expect(await hear_again(page, sound)).to_have_attribute("data-state", "recorded")
    await expect(page.get_by_role("checkbox")).to_be_checked()
    # After a withdrawal nothing is sent, and a new consent makes a new device.
    await page.get_by_role("checkbox").uncheck()
    await until_consent_is(page, kept=False)
    await expect(await hear_again(page, sound)).to_have_attribute("data-state", "without_consent")
    await page.get_by_role("checkbox").check()
    await until_consent_is(page, kept=True)
    await expect(await hear_again(page, sound)).to_have_attribute("data-state", "recorded")
    first, second, third = (each["measurement_token"] for each in audience.events)
    assert first == second != third
    assert len({each["event_id"] for each in audience.events}) == 3


async def test_a_code_that_is_not_measured_makes_no_event_even_with_consent(
    browsing: Browsing, measuring_url: str, audience: Audience, stand_in: Any, write_sound: Any
) -> None:
    stand_in.answers[GENUINE["token"]] = GENUINE["answer"]  # The measured one has the same token.
    page = await open_at(browsing, measuring_url)
    await page.get_by_role("checkbox").check()
    await page.clock.set_fixed_time(GENUINE["now"])
    measured = await choose(page, write_sound(GENUINE["token"]))
    await expect(measured).to_be_empty()
    assert audience.events == []


async def test_a_publisher_that_fails_does_not_hide_the_intent(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    browsing.tolerate("ERR_FAILED")
    page = await open_at(browsing, measuring_url)
    await page.route("**/v1/reporting-tokens", lambda route: route.abort())
    await page.get_by_role("checkbox").check()
    await expect(await choose(page, write_sound(MEASURED["token"]))).to_have_attribute("data-state", "failed")
    assert audience.events == []


async def test_a_publisher_that_does_not_answer_is_given_up(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    await page.route("**/v1/reporting-tokens", lambda _: None)
    await page.get_by_role("checkbox").check()
    await until_consent_is(page, kept=True)
    measured = await choose(page, write_sound(MEASURED["token"]))
    await expect(measured).to_have_attribute("data-state", "failed", timeout=15_000)
    assert audience.events == []


async def test_a_withdrawal_while_the_reporting_token_is_fetched_stops_the_event(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    asked: asyncio.Queue[Route] = asyncio.Queue()
    await page.route("**/v1/reporting-tokens", asked.put)
    await page.get_by_role("checkbox").check()
    await until_consent_is(page, kept=True)
    await page.locator("#file").set_input_files(write_sound(MEASURED["token"]))
    held = await asked.get()
    await page.get_by_role("checkbox").uncheck()
    await held.continue_()
    await expect(page.locator("[data-slot=measured]")).to_have_attribute("data-state", "withdrawn")
    assert audience.events == []


def record_requests(page: Page) -> list[str]:
    """Return a list to which the page's requests to the publisher are added."""
    requests: list[str] = []
    page.on("request", lambda sent: requests.append(urlsplit(sent.url).path) if sent.method == "POST" else None)
    return requests


async def test_a_withdrawal_before_the_reporting_token_is_fetched_sends_nothing(
    browsing: Browsing, measuring_url: str, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    requests = record_requests(page)
    await page.get_by_role("checkbox").check()
    await until_consent_is(page, kept=True)
    # The event is being made.
    await page.evaluate(
        """() => {
          const { sign } = SubtleCrypto.prototype;
          SubtleCrypto.prototype.sign = function (...asked) {
            document.getElementById('consent').click();
            return sign.apply(this, asked);
          };
        }"""
    )
    measured = await choose(page, write_sound(MEASURED["token"]))
    await expect(measured).to_have_attribute("data-state", "withdrawn")
    assert requests == []


@pytest.mark.parametrize("clicks", [1, 2])
async def test_a_withdrawal_after_something_was_sent_ends_the_retries_and_claims_nothing_about_them(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any, clicks: int
) -> None:
    """Also if the person agrees again at once: the consent under which the event was made is gone."""
    browsing.tolerate("status of 503")
    page = await open_at(browsing, measuring_url)
    requests = record_requests(page)

    async def withdraw_and_fail(route: Route) -> None:
        if route.request.method != "POST":
            await route.continue_()
            return
        for _ in range(clicks):
            await page.evaluate("document.getElementById('consent').click()")
        await route.fulfill(status=503, headers={"access-control-allow-origin": "*"})

    await page.route("**/v1/events", withdraw_and_fail)
    await page.get_by_role("checkbox").check()
    await until_consent_is(page, kept=True)
    measured = await choose(page, write_sound(MEASURED["token"]))
    await expect(measured).to_have_attribute("data-state", "withdrawn")
    assert "nothing was sent" not in await measured.inner_text()
    assert requests == ["/v1/reporting-tokens", "/v1/events"]
    assert audience.events == []
    await expect(page.get_by_role("checkbox")).to_be_checked(checked=clicks == 2)


async def test_a_withdrawal_that_the_browser_cannot_store_is_said_and_holds_for_the_page(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    await page.get_by_role("checkbox").check()
    await until_consent_is(page, kept=True)
    await page.evaluate("() => { IDBObjectStore.prototype.delete = () => { throw new Error('not stored'); }; }")
    await page.get_by_role("checkbox").uncheck()
    await expect(page.locator("#consent-state")).to_contain_text("could not delete the consent")
    measured = await choose(page, write_sound(MEASURED["token"]))
    await expect(measured).to_have_attribute("data-state", "without_consent")
    assert audience.events == []
    assert await page.evaluate(READ_RECORD) is not None


async def test_a_consent_that_the_browser_cannot_store_is_said_and_unchecks_the_box(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    await page.evaluate("() => { IDBObjectStore.prototype.put = () => { throw new Error('not stored'); }; }")
    await page.get_by_role("checkbox").press("Space")
    await expect(page.locator("#consent-state")).to_contain_text("could not store your consent")
    await expect(page.get_by_role("checkbox")).not_to_be_checked()
    await expect(await choose(page, write_sound(MEASURED["token"]))).to_have_attribute("data-state", "without_consent")
    assert audience.events == []


async def test_a_consent_to_another_publisher_is_none(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    await page.get_by_role("checkbox").check()
    await until_consent_is(page, kept=True)
    await page.evaluate(
        """async () => {
          const { readRecord, writeRecord } = await import('/static/js/listen/consent_store.js');
          await writeRecord({ ...(await readRecord()), publisherUrl: 'https://publisher.example' });
        }"""
    )
    measured = await hear_again(page, write_sound(MEASURED["token"]))
    await expect(measured).to_have_attribute("data-state", "without_consent")
    await expect(page.get_by_role("checkbox")).not_to_be_checked()
    assert audience.events == []


async def test_a_code_that_another_integration_measures_is_not_mentioned_to_the_publisher(
    browsing: Browsing,
    stand_in: Any,
    write_sound: Any,
    serve_console: Callable[..., AbstractContextManager[str]],
) -> None:
    stand_in.keys, stand_in.answers[MEASURED["token"]] = VECTORS["keys"], MEASURED["answer"]
    publisher = {"publisher_url": "http://127.0.0.1:9", "publisher_integration_id": "int_of-somebody-else"}
    with serve_console(stand_in.url, **publisher) as url:
        page = await open_at(browsing, f"{url}/listen")
        requests = record_requests(page)
        await page.get_by_role("checkbox").check()
        measured = await choose(page, write_sound(MEASURED["token"]))
        await expect(measured).to_have_attribute("data-state", "other_publisher")
        await expect(measured).to_contain_text("not by the publisher of this page")
    assert requests == []


async def test_a_code_that_is_checked_again_is_counted_once_a_day(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any, stand_in: Any
) -> None:
    page = await open_at(browsing, measuring_url)
    await page.get_by_role("checkbox").check()
    measured = await choose(page, write_sound(MEASURED["token"]))
    await expect(measured).to_have_attribute("data-state", "recorded")
    await page.clock.set_fixed_time(MEASURED["answer"]["resolution_proof"]["expires_at"])
    await page.get_by_role("button", name="Check again").click()
    await expect(measured).to_have_attribute("data-state", "duplicate")
    assert len(stand_in.resolved) == 2
    assert len(audience.events) == 1


async def test_of_two_changes_of_mind_at_once_the_last_one_counts(browsing: Browsing, measuring_url: str) -> None:
    """A consent that is withdrawn while the secret of the device is made is not stored, not even for a moment."""
    page = await open_at(browsing, measuring_url)
    await page.evaluate(
        """() => {
          const { generateKey } = SubtleCrypto.prototype;
          SubtleCrypto.prototype.generateKey = function (...asked) {
            document.getElementById('consent').click();
            return generateKey.apply(this, asked);
          };
          window.changes = [];
          for (const name of ['put', 'delete']) {
            const change = IDBObjectStore.prototype[name];
            IDBObjectStore.prototype[name] = function (...asked) {
              window.changes.push(name);
              return change.apply(this, asked);
            };
          }
        }"""
    )
    await page.evaluate("document.getElementById('consent').click()")
    async with asyncio.timeout(10):  # Playwright's own waiting would evaluate a text, which the page's policy forbids.
        while len(await page.evaluate("window.changes")) < 2:
            pass
    assert await page.evaluate("window.changes") == ["delete", "delete"]
    await expect(page.get_by_role("checkbox")).not_to_be_checked()


async def test_a_browser_that_stores_nothing_hears_without_measuring(
    browsing: Browsing, measuring_url: str, audience: Audience, write_sound: Any
) -> None:
    page = await browsing.open_page()
    await page.add_init_script("IDBFactory.prototype.open = () => { throw new DOMException('', 'SecurityError'); }")
    await page.clock.set_fixed_time(MEASURED["now"])
    await open_listening_page(page, measuring_url)
    await expect(page.get_by_role("checkbox")).to_be_disabled()
    measured = await choose(page, write_sound(MEASURED["token"]))
    await expect(measured).to_have_attribute("data-state", "without_consent")
    assert audience.events == []


async def test_a_console_without_a_publisher_asks_for_no_consent(browsing: Browsing, listen_url: str) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    await expect(page.get_by_role("checkbox")).to_have_count(0)
