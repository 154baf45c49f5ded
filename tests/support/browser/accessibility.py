"""Pages in a browser against the rules of axe for WCAG 2.2 AA, in both colour schemes and on a narrow screen."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Page

WIDE: Final[Any] = {"width": 1280, "height": 900}
NARROW: Final[Any] = {"width": 320, "height": 640}

_AXE: Final = (Path(__file__).parents[2] / "axe/node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")
# One element that passes is enough for each rule, and no rule here reads style sheets.
_FASTER: Final = {"resultTypes": ["violations"], "preload": False}
_EVERY_RULE: Final[Any] = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
    # Of WCAG 2.2, and off unless it is asked for.
    "rules": {"target-size": {"enabled": True}},
    **_FASTER,
}
# The other scheme changes the colours of a page and nothing else, and a narrow screen changes all but the colours.
_OF_COLOURS: Final = ("color-contrast", "link-in-text-block")
_RULES_OF_COLOURS: Final = {"runOnly": {"type": "rule", "values": _OF_COLOURS}, **_FASTER}
_OTHER_RULES: Final = {
    **_EVERY_RULE,
    "rules": {**_EVERY_RULE["rules"], **{name: {"enabled": False} for name in _OF_COLOURS}},
}
WIDER: Final = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

Open = Callable[..., Awaitable[Page]]


async def find_broken_rules(page: Page, *, rules: Any = _EVERY_RULE) -> dict[str, Any]:
    """Return the elements that break each rule of axe on the page as it is shown, and whether it is too wide."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_AXE)
    result = await page.evaluate("rules => axe.run(document, rules)", rules)
    assert result["passes"], "axe looked at something"
    broken = {each["id"]: [node["html"] for node in each["nodes"]] for each in result["violations"]}
    return {**broken, "wider than the screen": True} if await page.evaluate(WIDER) else broken


async def find_broken_in_both_schemes(page: Page) -> dict[str, Any]:
    """Return what is broken on a light and on a dark screen, by screen, where anything is."""
    found = {"light": await find_broken_rules(page)}
    await page.emulate_media(color_scheme="dark")
    found["dark"] = await find_broken_rules(page, rules=_RULES_OF_COLOURS)
    await page.emulate_media(color_scheme="light")
    return {screen: broken for screen, broken in found.items() if broken}


async def find_broken_on_screens(page: Page) -> dict[str, Any]:
    """Return what is broken on a light, a dark and a narrow screen, by screen, where anything is."""
    found = await find_broken_in_both_schemes(page)
    await page.set_viewport_size(NARROW)
    narrow = await find_broken_rules(page, rules=_OTHER_RULES)
    await page.set_viewport_size(WIDE)
    return {**found, "narrow": narrow} if narrow else found


async def assert_no_page_breaks_a_rule(open_page: Open, paths: Sequence[str]) -> None:
    """Visit each page in English on wide screens, and in French, whose words are longer, on a narrow one.

    `open_page` opens a page with Playwright's options.
    """
    wide = await open_page(viewport=WIDE, color_scheme="light")
    narrow = await open_page(viewport=NARROW, color_scheme="light", locale="fr-FR")
    broken = {}
    for path in paths:
        for page in (wide, narrow):
            answer = await page.goto(path)
            assert answer is not None
            assert answer.status == 200, path
        if found := await find_broken_in_both_schemes(wide):
            broken[path] = found
        if found := await find_broken_rules(narrow, rules=_OTHER_RULES):
            broken[f"{path} in French on a narrow screen"] = found
    assert not broken, broken
