"""From an interaction to the next paint, as Chromium measures it on the console's pages."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from playwright.async_api import Page, async_playwright

# Chromium reports no interaction that is shorter.
SHORTEST_MS: Final = 16
_OBSERVE: Final = f"""() => {{
  window.durations = new Map();
  new PerformanceObserver((list) => {{
    for (const each of list.getEntries()) {{
      const {{ interactionId: id, duration }} = each;
      if (id) durations.set(id, Math.max(durations.get(id) ?? 0, duration));
    }}
  }}).observe({{ type: "event", durationThreshold: {SHORTEST_MS}, buffered: true }});
}}"""
# Two frames later, the entries of what was painted have been delivered.
_READ: Final = """() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() =>
  setTimeout(() => resolve([...durations.values()]), 50))))"""


def measure_next_paint(url: str, cookies: Mapping[str, str], paths: Sequence[str]) -> dict[str, list[float]]:
    """Return how long the interactions with each page took in ms; those shorter than `SHORTEST_MS` are left out."""
    return asyncio.run(_measure(url, cookies, paths))


async def _measure(url: str, cookies: Mapping[str, str], paths: Sequence[str]) -> dict[str, list[float]]:
    async with open_page(url, cookies) as page:
        durations: dict[str, list[float]] = {}
        for path in paths:
            await page.goto(path, wait_until="load")
            await page.evaluate(_OBSERVE)
            await _interact(page)
            durations[path] = await page.evaluate(_READ)
        return durations


@contextlib.asynccontextmanager
async def open_page(url: str, cookies: Mapping[str, str]) -> AsyncIterator[Page]:
    """Yield a page of Debian's Chromium that was never at this address, with the cookies of a session."""
    program = shutil.which("chromium")
    if program is None:
        raise RuntimeError("there is no chromium")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=flags)
        context = await browser.new_context(base_url=url)
        await context.add_cookies([{"name": name, "value": value, "url": url} for name, value in cookies.items()])
        yield await context.new_page()
        await browser.close()


async def _interact(page: Page) -> None:
    """Open and close menus, folds and the palette, type, and select: what people do without leaving the page."""
    for menu in (await page.locator("details.menu > summary").all())[:2]:
        await menu.click()
        await page.keyboard.press("Escape")
    for fold in (await page.locator("main details > summary").all())[:3]:
        await fold.click()
    for box in (await page.locator("main input[type=checkbox]:visible").all())[:4]:
        await box.click()
    fields = page.locator("main input:is([type=text], [type=search], [type=url]):visible")
    for field in (await fields.all())[:2]:
        await field.click()
        await page.keyboard.type("radio")
    await page.locator("h1").click()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("summer")
    await page.keyboard.press("Escape")
