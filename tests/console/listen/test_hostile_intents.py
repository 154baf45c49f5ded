"""Intents of a stranger: whatever they hold is text, and only the person opens a plain https link."""

from typing import Any, Final

import pytest
from playwright.async_api import Locator, Page, expect
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page
from support.codes.signed_answers import GENUINE, VECTORS, sign_answer

pytestmark = pytest.mark.xdist_group("browser")

TOKEN: Final = GENUINE["token"]


async def hear_intent(browsing: Browsing, hear: Any, url: str, core: Any, intent: dict[str, Any]) -> Locator:
    core.keys, core.answers[TOKEN] = VECTORS["keys"], sign_answer(intent)
    page = await browsing.open_page()
    await page.clock.set_fixed_time(GENUINE["now"])
    heard: Locator = await hear(page, url, TOKEN)
    assert await heard.get_attribute("data-outcome") == "verified"
    return heard


def link_to(url: str) -> dict[str, Any]:
    return {"type": "link", "action": "open", "resource": {"url": url}}


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(document.domain)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)", " javascript:alert(1)"),
        *("data:text/html,<script>alert(1)</script>", "vbscript:x", "file:///etc/passwd", "http://example.org/"),
        *("https://bank.example@evil.example/", "https://user:password@evil.example/", "https:evil.example"),
        *("https://", "https://exa mple.org/", "//evil.example/", "intent://scan/#Intent;scheme=zxing;end"),
    ],
)
async def test_an_address_that_is_no_plain_https_link_is_inert_text(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, url: str
) -> None:
    heard = await hear_intent(browsing, hear, listen_url, stand_in, link_to(url))
    await expect(heard.locator("a")).to_have_count(0)
    shown = await heard.locator("[data-slot=resource]").text_content() or ""
    assert url.replace("\n", "[U+000A]").strip() in shown


LOOK_ALIKES: Final = {
    "https://www.раураl.com/login": "www.xn--l-7sba6dbr.com",
    "https://exämple.org/": "xn--exmple-cua.org",
    "https://EXAMPLE.org:8443/a": "example.org:8443",
    "https://0x7f.1/": "127.0.0.1",
    "https://example.org.evil.example/": "example.org.evil.example",
}


@pytest.mark.parametrize("url", list(LOOK_ALIKES))
async def test_a_link_shows_the_host_that_it_leads_to_in_ascii(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, url: str
) -> None:
    heard = await hear_intent(browsing, hear, listen_url, stand_in, link_to(url))
    link = heard.get_by_role("link")
    await expect(link).to_have_count(1)
    host = LOOK_ALIKES[url]
    await expect(heard.locator("code[data-slot=host]")).to_have_text(host)
    await expect(link).to_have_text(f"Open {host}")
    assert (await link.get_attribute("href") or "").startswith(f"https://{host}/")
    assert await link.get_attribute("rel") == "noopener noreferrer"
    assert await link.get_attribute("target") == "_blank"


async def test_a_link_is_opened_only_by_the_person_in_a_new_tab(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    browsing.tolerate("another machine|ERR_NAME_NOT_RESOLVED")
    heard = await hear_intent(browsing, hear, listen_url, stand_in, link_to("https://example.org/tonight"))
    page: Page = heard.page
    await page.wait_for_timeout(500)
    assert browsing.complaints == [], "nothing was opened or fetched beforehand"
    async with page.context.expect_page() as opening:
        await heard.get_by_role("link").press("Enter")
    opened = await opening.value
    assert page.url == listen_url
    await expect(heard).to_be_visible()
    assert await opened.evaluate("window.opener") is None
    assert "request to another machine: https://example.org/tonight" in browsing.complaints


MARKUP: Final = "<img src=x onerror=alert(1)><script>alert(1)</script>{{7*7}}"


async def test_markup_and_invisible_characters_are_shown_as_text(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    intent = {
        "type": MARKUP,
        "action": "open\u202egnp.exe",
        "resource": {MARKUP: [MARKUP, {"deep": True}, None, 1.5], "__proto__": {"polluted": "yes"}, "zero": "a\u200bb"},
    }
    heard = await hear_intent(browsing, hear, listen_url, stand_in, intent)
    assert await heard.locator("img, script").count() == 0
    assert await heard.locator("[data-slot=type]").text_content() == MARKUP
    assert await heard.locator("[data-slot=action]").text_content() == "open[U+202E]gnp.exe"
    resource = await heard.locator("[data-slot=resource]").text_content() or ""
    for text in (MARKUP, "deep", "true", "null", "1.5", "__proto__", "polluted", "a[U+200B]b"):
        assert text in resource, text
    assert await heard.page.evaluate("({}).polluted") is None


VISIBLE: Final = {
    "a\u034fb": "a[U+034F]b",
    "a\u3164b\u115fc\uffa0d": "a[U+3164]b[U+115F]c[U+FFA0]d",
    "a\u2800b": "a[U+2800]b",
    "a\U000e0100b\ufe0f": "a[U+E0100]b[U+FE0F]",
    "\u202eabc\u00ad\x07": "[U+202E]abc[U+00AD][U+0007]",
    "e\u0301\u0302\u0303\u0304": "e\u0301\u0302\u0303\u0304",
    "e" + "\u0301" * 5: "e" + "[U+0301]" * 5,
    "a" + "\u0334\u20dd\u0489" * 2 + "b": "a" + "[U+0334][U+20DD][U+0489]" * 2 + "b",
    "สวัสดี, नमस्ते, שָׁלוֹם": "สวัสดี, नमस्ते, שָׁלוֹם",
}


async def test_empty_characters_and_piles_of_marks_are_written_out(browsing: Browsing, listen_url: str) -> None:
    """What cannot be seen could hide a difference, and a pile of marks could paint over the words around it."""
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    shown = await page.evaluate(
        "(texts) => import('/static/js/listen/safe_text.js').then(({ makeVisible }) => texts.map(makeVisible))",
        list(VISIBLE),
    )
    assert dict(zip(VISIBLE, shown, strict=True)) == VISIBLE


async def test_a_text_paints_only_in_its_own_place_however_long_it_is(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    long = "W" * 2_000 + " a long text" * 1_000
    intent = {
        "type": "\u0301\u0302\u0303\u0304" * 40,
        "action": "W" * 160,
        "resource": {"long": long, long[:90]: "x:y"},
    }
    heard = await hear_intent(browsing, hear, listen_url, stand_in, intent)
    places = await heard.evaluate(
        """(article) => [...article.querySelectorAll('bdi')].map((place) => {
          const { contain, overflowX, overflowY } = getComputedStyle(place);
          return `${contain} ${overflowX} ${overflowY}`;
        })"""
    )
    assert len(places) == 7
    assert set(places) == {"paint clip clip"}
    resource, article = heard.locator("[data-slot=resource]"), await heard.bounding_box()
    inner, page_width = await resource.bounding_box(), await heard.evaluate("document.documentElement.scrollWidth")
    assert inner is not None
    assert article is not None
    assert inner["height"] < 500
    assert inner["x"] + inner["width"] <= article["x"] + article["width"]
    assert page_width <= await heard.evaluate("innerWidth")
    assert await resource.get_attribute("tabindex") == "0", "the keyboard scrolls to what is not shown"
    await expect(heard.locator("[data-slot=until]")).to_be_visible()
