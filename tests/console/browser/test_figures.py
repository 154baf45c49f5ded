"""What every page weighs at first, and how far it moves while it loads, with lists of a hundred rows."""

import json
import secrets
from typing import Any, Final

import httpx2
import pytest
from console.browser.conftest import ServedConsole
from console.browser.every_page import consumer as consumer
from console.browser.every_page import every_path as every_path
from console.browser.every_page import open_page
from console.browser.every_page import steps as steps
from console.conftest import connect_to
from playwright.async_api import Page, expect
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

pytestmark = pytest.mark.xdist_group("browser")

# In bytes, and as a share of the screen: docs/guides/console.md.
FIRST_VIEW_MAX: Final = 150_000
SHIFT_MAX: Final = 0.02
SHIFT: Final = """() => new Promise((resolve) => {
  let sum = 0;
  new PerformanceObserver((list) => { for (const each of list.getEntries()) sum += each.value; })
    .observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => setTimeout(() => resolve(sum), 100));
})"""
_MOVE: Final = """() => new Promise((resolve) => requestAnimationFrame(() => {
  document.querySelector("main").style.marginTop = "300px";
  requestAnimationFrame(() => requestAnimationFrame(resolve));
}))"""
_REST: Final = """() => new Promise((resolve) => {
  let frames = 0;
  const count = () => (++frames === 30 ? resolve() : requestAnimationFrame(count));
  count();
})"""
_IDS: Final = ("id", "xr_id", "subject_id", "offer_id", "plan_id")


class HundredRows(httpx2.AsyncBaseTransport):
    """Core, each of whose lists with an entry is as long as the call allows: the entry again, under other ids."""

    def __init__(self, beyond: httpx2.AsyncBaseTransport) -> None:
        self._beyond = beyond

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._beyond.handle_async_request(request)
        if request.method != "GET" or "json" not in response.headers.get("content-type", ""):
            return response
        document = json.loads(await response.aread())
        if isinstance(document, dict) and isinstance(document.get("data"), list) and document["data"]:
            lacking = min(int(request.url.params.get("limit", "50")), 100) - len(document["data"])
            document["data"] += [self._repeat(document["data"][0]) for _ in range(lacking)]
        headers = {name: value for name, value in response.headers.items() if name != "content-length"}
        body = httpx2.ByteStream(json.dumps(document).encode())
        return httpx2.Response(response.status_code, headers=headers, stream=body)

    @staticmethod
    def _repeat(entry: dict[str, Any]) -> dict[str, Any]:
        others = {
            key: f"{str(entry[key]).partition('_')[0]}_{secrets.token_urlsafe(16)}" for key in _IDS if key in entry
        }
        return {**entry, **others}


async def measure(page: Page, sizes: dict[str, int], urls: dict[str, str]) -> tuple[int, float]:
    """Return how many bytes the page that is shown loaded at first, and how far it moved."""
    shift = await page.evaluate(SHIFT)
    # A Code's sound is what its page is about, and comes after all that is shown at first.
    return sum(size for number, size in sizes.items() if "/sound.wav" not in urls[number]), shift


@pytest.mark.timeout(300)  # Some eighty pages.
async def test_every_page_is_light_and_does_not_move(
    served: ServedConsole, every_path: list[str], tenant: Tenant, clock: FakeClock
) -> None:
    page = await served.open("/listen", clock.now())
    await page.evaluate(_MOVE)
    assert await page.evaluate(SHIFT) > SHIFT_MAX, "a page that moves is found"
    browser = await page.context.new_cdp_session(page)
    urls: dict[str, str] = {}
    sizes: dict[str, int] = {}
    browser.on("Network.requestWillBeSent", lambda event: urls.update({event["requestId"]: event["request"]["url"]}))
    browser.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))
    await browser.send("Network.enable")
    await browser.send("Network.setCacheDisabled", {"cacheDisabled": True})
    served.browsing.tolerate("status of 4")
    figures = {}
    with served.client.core.leading_to(HundredRows(connect_to(tenant.api.app))):
        for path in dict.fromkeys(every_path):
            sizes.clear()
            if await open_page(page, path):
                figures[path] = await measure(page, sizes, urls)
        await page.context.clear_cookies()
        for path in ("/", "/organizations", "/nowhere"):
            sizes.clear()
            await open_page(page, path)
            figures[f"{path}, signed out"] = await measure(page, sizes, urls)

    assert len(figures) > 70, figures
    assert min(weight for weight, _ in figures.values()) > 20_000, "it was measured"
    assert {path: found for path, found in figures.items() if found[0] > FIRST_VIEW_MAX or found[1] > SHIFT_MAX} == {}


async def list_styled(page: Page) -> list[int]:
    """Return how many elements Chromium styled anew at each step, while the palette opens and closes."""
    browser = page.context.browser
    assert browser is not None
    await browser.start_tracing(page=page, categories=["devtools.timeline"])
    await page.keyboard.press("Control+k")
    await expect(page.get_by_label("Name, address or id")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.evaluate(_REST)
    trace = json.loads(await browser.stop_tracing())
    steps = [step for step in trace["traceEvents"] if step["name"] == "UpdateLayoutTree"]
    return [count for step in steps if (count := step["args"].get("elementCount"))]


async def test_the_palette_makes_no_long_page_be_styled_anew(
    served: ServedConsole, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.make_key(name="Playout")
    with served.client.core.leading_to(HundredRows(connect_to(tenant.api.app))):
        page = await served.open(f"/organizations/{tenant.organization_id}/members", clock.now())
    await page.wait_for_load_state("networkidle")
    elements = await page.evaluate("document.querySelectorAll('main *').length")
    assert elements > 1_000

    styled = await list_styled(page)

    assert 0 < len(styled) < 20, "nothing moves on a page that nobody uses"
    assert max(styled) < elements / 2
