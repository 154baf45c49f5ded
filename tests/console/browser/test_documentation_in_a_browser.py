"""The built documentation site in a browser, under the console's policy: it works, and the browser blocks nothing."""

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import expect
from support.processes.fake_clock import FakeClock

pytestmark = pytest.mark.xdist_group("browser")


async def test_the_site_is_searched_without_another_origin(served: ServedConsole, clock: FakeClock) -> None:
    page = await served.open("/guide/", clock.now(), viewport={"width": 1280, "height": 800})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto("/guide/fr/index.html")
    await expect(page.locator("html")).to_have_attribute("lang", "fr")

    await page.locator("[data-md-component=search-query]").fill("emergency stop")
    # The browser first makes the index, which takes seconds of a processor that other tests use, too.
    await expect(page.locator(".md-search-result__item a").first).to_be_visible(timeout=60_000)
    assert [url for url in asked if not url.startswith(served.url)] == []
    assert any(url.endswith("/search/search_index.json") for url in asked)
