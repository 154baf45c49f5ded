"""The listening page for everybody: rules of axe in every scheme, keyboard alone, and announcements."""

from typing import Any

import pytest
from playwright.async_api import expect
from support.browser.accessibility import WIDE, find_broken_on_screens
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page
from support.codes.signed_answers import GENUINE, VECTORS, sign_answer

pytestmark = pytest.mark.xdist_group("browser")

INTENT = {
    "type": "link",
    "action": "open",
    "resource": {"url": "https://example.org/", "other": "javascript:1", "list": [1]},
}


async def test_the_page_with_a_heard_code_breaks_no_rule(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    stand_in.keys, stand_in.answers[GENUINE["token"]] = VECTORS["keys"], sign_answer(INTENT)
    found = {}
    for language in ("en-GB", "fr-FR"):
        page = await browsing.open_page(locale=language, viewport=WIDE)
        await page.clock.set_fixed_time(GENUINE["now"])
        heard = await hear(page, listen_url, GENUINE["token"])
        assert await heard.get_attribute("data-outcome") == "verified"
        found[language] = await find_broken_on_screens(page)
    assert found == {"en-GB": {}, "fr-FR": {}}


async def test_what_was_heard_is_announced_and_reached_with_the_keyboard(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    stand_in.keys, stand_in.answers[GENUINE["token"]] = VECTORS["keys"], sign_answer(INTENT)
    page = await browsing.open_page()
    await page.clock.set_fixed_time(GENUINE["now"])
    heard = await hear(page, listen_url, GENUINE["token"])
    assert await heard.evaluate("(article) => article.parentElement.ariaLive") == "polite"
    assert await page.locator("#progress").get_attribute("role") == "status"
    await page.locator("#file").focus()
    await page.keyboard.press("Tab")
    await expect(heard.get_by_role("link", name="Open example.org")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(heard.get_by_role("button", name="Copy")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(heard.locator("summary")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="Test this device")).to_be_focused()


async def test_the_level_that_changes_every_second_is_not_announced(browsing: Browsing, listen_url: str) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    announced = "output, [role=status], [role=alert], [role=log], [aria-live]:not([aria-live=off])"
    assert await page.locator("#level").evaluate("(level, selector) => level.closest(selector)", announced) is None
    assert await page.locator("#file-progress").get_attribute("role") == "status"


async def test_without_scripts_the_page_says_what_it_needs(browsing: Browsing, listen_url: str) -> None:
    page = await browsing.open_page(java_script_enabled=False)
    await page.goto(listen_url)
    assert "This page needs JavaScript." in (await page.locator("noscript").text_content() or "")
    for control in ("#start", "#file", "#test"):
        await expect(page.locator(control)).to_be_disabled()
    await expect(page.locator("#stop")).to_be_hidden()


async def test_the_page_works_with_the_words_of_every_message(browsing: Browsing, listen_url: str) -> None:
    """Each message that the scripts can show stands in a template, with the values that they fill in."""
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    unfilled = await page.evaluate(
        """() => [...document.querySelectorAll('template')].map((each) => each.content.textContent)
          .filter((words) => /[{}]|undefined/.test(words) || words.trim() === '')"""
    )
    assert unfilled == []
