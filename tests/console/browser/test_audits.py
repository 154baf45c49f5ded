"""What Chromium itself finds in the pages: its issues, its accessibility tree, and how they take zoom and settings."""

from collections.abc import Sequence
from typing import Any, Final

import pytest
from console.browser.conftest import ServedConsole
from console.browser.every_page import consumer as consumer
from console.browser.every_page import every_path as every_path
from console.browser.every_page import open_page
from console.browser.every_page import steps as steps
from playwright.async_api import CDPSession, Page
from support.browser.accessibility import assert_no_page_breaks_a_rule
from support.console.planting import plant
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")

_WIDE: Final[Any] = {"width": 1280, "height": 1024}
_ZOOMED: Final[Any] = {"width": 320, "height": 256}  # 400 %.
_NAME: Final = "<img/src=x/onerror=alert(1)>" + "שלום" * 20 + "N" * 92
_INTERACTIVE: Final = frozenset(
    {
        "button",
        "checkbox",
        "combobox",
        "link",
        "menuitem",
        "radio",
        "searchbox",
        "spinbutton",
        "switch",
        "tab",
        "textbox",
    }
)
# Practices that are not of accessibility, each with the elements that break it.
_PRACTICES: Final = """() => {
  const list = (selector, breaks) => [...document.querySelectorAll(selector)].filter(breaks).map((e) => e.outerHTML);
  const viewport = document.querySelector("meta[name=viewport]")?.content ?? "";
  const isStretched = (e) => e.complete && e.naturalWidth > 0 && e.clientHeight > 0 &&
    Math.abs(e.clientWidth / e.clientHeight / (e.naturalWidth / e.naturalHeight) - 1) > 0.05;
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  const found = {
    "a doctype": document.compatMode === "CSS1Compat" && document.doctype?.name === "html" ? [] : ["none"],
    "UTF-8": document.characterSet === "UTF-8" && document.querySelector("head > meta[charset]") ? [] : ["none"],
    "a viewport that zooms": viewport === "width=device-width, initial-scale=1" ? [] : [viewport],
    "one heading": document.querySelectorAll("h1").length === 1 ? [] : list("h1", () => true),
    "a title": document.title.length > 12 ? [] : [document.title],
    "ids that differ": ids.filter((id, at) => ids.indexOf(id) !== at),
    "pictures in their shape": list("img", isStretched),
    "links that lead somewhere": list("a:not([href]), a[href='#'], a[href^='javascript:']", () => true),
    "no password of a person": list("input[type=password]:not([autocomplete=new-password])", () => true),
    "pages that leave this one alone": list("a[target=_blank]:not([rel*=noopener])", () => true),
    "nothing out of date": list("center, font, marquee, big, strike, tt", () => true),
  };
  return Object.fromEntries(Object.entries(found).filter(([, broken]) => broken.length > 0));
}"""
# With the colours of the system and without motion.
_SETTINGS: Final = """() => [
  ...document.getAnimations().filter((e) => e.playState === "running").map((e) => `moves: ${e.animationName}`),
  ...[...document.querySelectorAll("button, .button")].filter((e) => e.checkVisibility() && !e.closest(".menu-body"))
    .filter((e) => getComputedStyle(e).borderTopWidth === "0px").map((e) => `has no border: ${e.outerHTML}`),
]"""
_PLANT: Final = """() => {
  const planted = document.createElement("div");
  planted.innerHTML = `<h1>Again</h1><a>nowhere</a><i id="content"></i><button class="quiet"></button>`;
  document.querySelector("main").append(planted);
  planted.animate([{ width: "2000px" }, { width: "1999px" }], { duration: 1e6 });
}"""
_PLANTED: Final = {
    *("one heading", "links that lead somewhere", "ids that differ", "names", "settings"),
    "wider than the screen at 400 %",
}
_WIDER: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def find_nameless(browser: CDPSession) -> list[str]:
    """Return the controls and links that the accessibility tree gives no name."""
    nodes = (await browser.send("Accessibility.getFullAXTree"))["nodes"]
    shown = [each for each in nodes if not each.get("ignored")]
    assert sum(each["role"]["value"] == "main" for each in shown) == 1
    return [
        each["role"]["value"]
        for each in shown
        if each["role"]["value"] in _INTERACTIVE and not each.get("name", {}).get("value", "").strip()
    ]


async def audit(page: Page, browser: CDPSession, issues: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what is wrong with the page that is shown."""
    found: dict[str, Any] = await page.evaluate(_PRACTICES)
    found["names"] = await find_nameless(browser)
    await page.emulate_media(forced_colors="active", reduced_motion="reduce")
    found["settings"] = await page.evaluate(_SETTINGS)
    await page.emulate_media(forced_colors="none", reduced_motion="no-preference")
    await page.set_viewport_size(_ZOOMED)
    found["wider than the screen at 400 %"] = max(0, await page.evaluate(_WIDER))
    await page.set_viewport_size(_WIDE)
    found["issues"] = list(issues)
    return {name: what for name, what in found.items() if what}


@pytest.mark.timeout(300)  # Some eighty pages.
async def test_chromium_finds_nothing_wrong_whatever_people_type(
    served: ServedConsole, every_path: list[str], clock: FakeClock
) -> None:
    """A name has no end, is written from right to left, and would be markup."""
    page = await served.open("/organizations", clock.now(), viewport=_WIDE)
    browser = await page.context.new_cdp_session(page)
    issues: list[dict[str, Any]] = []
    browser.on("Audits.issueAdded", lambda event: issues.append(event["issue"]))
    await browser.send("Audits.enable")
    await page.evaluate(_PLANT)
    assert set(await audit(page, browser, issues)) == _PLANTED, "it finds what is wrong"
    # Their members called `name` are no names of tenants.
    served.client.core.alter("GET /v1/platform/settings", lambda document: document)
    served.client.core.alter("GET *", lambda document: plant(document, lambda _: _NAME))
    served.browsing.tolerate("status of 4")
    wrong, shown = {}, 0
    for path in every_path:
        issues.clear()
        if not await open_page(page, path):
            continue
        shown += _NAME in await page.inner_text("body")
        if found := await audit(page, browser, issues):
            wrong[path] = found

    assert wrong == {}
    assert shown > 50


async def test_pages_with_offline_packs_break_no_rule(served: ServedConsole, tenant: Tenant, clock: FakeClock) -> None:
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    await tenant.make_pack(campaign["id"])
    project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    paths = [f"{project}/campaigns/{campaign['id']}/stop", f"{project}/codes/{code['xr_id']}/revoke"]
    page = await served.open(paths[0], clock.now())
    assert await page.locator("#offline-packs").get_attribute("data-packs") == "1"

    await assert_no_page_breaks_a_rule(served.opener(clock.now()), paths)
