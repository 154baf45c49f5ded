"""The newest result: on top, in view, announced, and with times of one form."""

from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page
from support.codes.signed_answers import GENUINE, VECTORS

pytestmark = pytest.mark.xdist_group("browser")

TOKEN: Final = GENUINE["token"]
OTHER_TOKEN: Final = "brd_zyxwvutsrqponmlk"
PHONE: Final = {"viewport": {"width": 320, "height": 480}}  # A small one, beneath the bars of its browser.
# A time as a person reads it: the date, and the hours as their country writes them.
WRITE_TIME: Final = """([at, locale, timeZone]) =>
  new Date(at).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'medium', timeZone })"""
# Hears the tokens one after the other, each with an answer of its own, and returns what the page then shows.
HEAR: Final = """async ({ tokens, isPast }) => {
  const { Heard } = await import('/static/js/listen/heard.js');
  const list = document.getElementById('heard');
  const receiver = {
    resolve: async (token) => {
      const policy = { audienceMeasurement: false };
      const intent = { type: token, action: 'a', resource: {} };
      return { token, intent, policy, xrId: token, expiresAt: new Date() };
    },
  };
  const heard = new Heard(list, receiver, { report: () => null });
  for (const token of tokens) {
    for (const shown of heard._shown.values()) if (isPast) shown.article.dataset.outcome = 'past';
    heard.add(token);
    while (list.querySelector('[data-outcome=resolving]')) await new Promise((resolve) => setTimeout(resolve));
  }
  return [...list.querySelectorAll('[data-slot=type]')].map((each) => each.textContent);
}"""


async def open_page(browsing: Browsing, url: str, **options: Any) -> Page:
    page = await browsing.open_page(**options)
    await page.clock.set_fixed_time(GENUINE["now"])
    await open_listening_page(page, url)
    return page


@pytest.mark.parametrize(
    ("tokens", "is_past", "order"),
    [("abc", False, "cba"), ("aba", False, "ba"), ("aba", True, "ab")],
    ids=["each once", "again", "again when it is past"],
)
async def test_the_newest_result_is_on_top(
    browsing: Browsing, listen_url: str, tokens: str, order: str, *, is_past: bool
) -> None:
    """A Code that is heard all the time keeps its place while its answer holds."""
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)

    assert await page.evaluate(HEAR, {"tokens": list(tokens), "isPast": is_past}) == list(order)


async def test_the_newest_file_is_on_top_of_what_was_heard_before(browsing: Browsing, listen_url: str) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)

    folded = await page.evaluate(
        """async (files) => {
          const { Heard } = await import('/static/js/listen/heard.js');
          const [list, before] = ['heard', 'before'].map((id) => document.getElementById(id));
          const receiver = { resolve: () => new Promise(() => null) };
          const heard = new Heard(list, receiver, { report: () => null }, before);
          for (const file of files) {
            heard.add(file, file);
            heard.setAside();
          }
          return [...before.querySelectorAll('[data-slot=name]')].map((each) => each.textContent);
        }""",
        ["first", "second"],
    )

    assert folded == ["second", "first"]


async def test_what_is_typed_into_a_report_outlasts_its_answer(browsing: Browsing, listen_url: str) -> None:
    """A Code that is heard all the time is checked again when its answer is past, but not under somebody's hands."""
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)

    kept = await page.evaluate(
        """async () => {
          const { Heard } = await import('/static/js/listen/heard.js');
          const list = document.getElementById('heard');
          let count = 0;
          const resolve = async (token) => {
            count += 1;
            const intent = { type: 't', action: 'a', resource: {} };
            return { token, intent, policy: {}, xrId: token, expiresAt: new Date() };
          };
          const heard = new Heard(list, { resolve }, { report: () => null });
          const hear = async () => {
            heard.add('a');
            while (list.querySelector('[data-outcome=resolving]')) await new Promise((resolve) => setTimeout(resolve));
          };
          await hear();
          const article = list.firstElementChild;
          article.querySelector('details').open = true;
          const typed = article.querySelector('textarea');
          typed.value = 'It asks for passwords.';
          typed.focus();
          article.dataset.outcome = 'past';
          await hear();
          const whileTyping = [count, document.activeElement === typed];
          typed.blur();
          await hear();
          return [whileTyping, count, article.querySelector('textarea').value];
        }"""
    )

    assert kept == [[1, True], 2, "It asks for passwords."]


@pytest.mark.parametrize("status", [None, 410])
async def test_a_result_comes_into_view_on_a_phone(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, status: int | None
) -> None:
    browsing.tolerate("status of 410")
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    if status is not None:
        stand_in.statuses[TOKEN] = status
    page = await browsing.open_page(**PHONE)
    await page.clock.set_fixed_time(GENUINE["now"])
    await open_listening_page(page, listen_url)
    await expect(page.locator("#heard-title")).not_to_be_in_viewport()

    heard = await hear(page, listen_url, TOKEN)

    await expect(heard.get_by_role("heading")).to_be_in_viewport(ratio=1)
    await expect(heard.locator("p").first).to_be_in_viewport(ratio=1)
    assert await page.locator("#heard").get_attribute("aria-live") == "polite"


async def test_a_result_moves_nothing_while_somebody_is_at_work_in_another(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    browsing.tolerate("status of 410")
    stand_in.keys, stand_in.answers[TOKEN], stand_in.statuses[OTHER_TOKEN] = VECTORS["keys"], GENUINE["answer"], 410
    page = await open_page(browsing, listen_url, reduced_motion="reduce", **PHONE)
    first = await hear(page, listen_url, TOKEN)
    await first.locator("summary").focus()
    await page.evaluate("scrollTo(0, 0)")

    await page.evaluate(
        """async (token) => {
          const { Heard } = await import('/static/js/listen/heard.js');
          const { Receiver } = await import('/static/receiver/index.js');
          const receiver = new Receiver(document.getElementById('listen').dataset.coreUrl);
          new Heard(document.getElementById('heard'), receiver, { report: () => null }).add(token);
        }""",
        OTHER_TOKEN,
    )

    await expect(page.locator("#heard article[data-outcome=expired]")).to_have_count(1)
    await expect(first.locator("summary")).to_be_focused()
    assert await page.evaluate("scrollY") == 0


@pytest.mark.parametrize(("motion", "behaviour"), [("reduce", "auto"), ("no-preference", "smooth")])
async def test_the_page_scrolls_at_once_where_reduced_motion_is_asked_for(
    browsing: Browsing, listen_url: str, motion: str, behaviour: str
) -> None:
    page = await open_page(browsing, listen_url, reduced_motion=motion)

    assert await page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == behaviour


@pytest.mark.parametrize(
    ("locale", "zone"), [("en-GB", "Africa/Tunis"), ("en-US", "America/Los_Angeles"), ("fr-FR", "Europe/Paris")]
)
async def test_every_time_has_the_zone_and_the_form_of_the_device(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, locale: str, zone: str
) -> None:
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await open_page(browsing, listen_url, locale=locale, timezone_id=zone)

    heard = await hear(page, listen_url, TOKEN)

    until = heard.locator("time[data-slot=until]")
    ends_at = str(await until.get_attribute("datetime"))
    assert await until.text_content() == await page.evaluate(WRITE_TIME, [ends_at, locale, zone])
    assert await page.locator("main time").count() == 1


def test_one_place_writes_the_times_of_the_page() -> None:
    """So that a time that is added later has the form of the others."""
    scripts = Path(__file__).parents[3] / "src" / "soundmark" / "console" / "static" / "js" / "listen"
    writing = [each.name for each in scripts.glob("*.js") if "timeStyle" in each.read_text(encoding="utf-8")]
    assert writing == ["packs.js"]
