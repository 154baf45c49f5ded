"""The pictures of the console in the README.

`make screenshots` writes them anew. The test takes them each time, so that they can always be made.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from console.browser.conftest import ServedConsole
from PIL import Image
from playwright.async_api import Page, expect
from support.audience.measured_tenant import measure_tenant
from support.audience.recorded_events import RecordedEvent, store_events
from support.codes.sounds import render_token
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs/images"
# The folder that `make screenshots` names.
CHOSEN = os.environ.get("SCREENSHOTS_INTO")
Take = Callable[[Page, str], Awaitable[None]]
SIZE = {"width": 1120, "height": 760}
_COLOURS_MIN = 20  # A page that failed to load has a handful.


@pytest.fixture
def take(tmp_path: Path) -> Take:
    """Take a picture, and compare its size with the one that the README shows."""

    async def take(page: Page, name: str) -> None:
        path = Path(CHOSEN or tmp_path) / name
        await page.screenshot(path=path)
        with Image.open(path) as taken, Image.open(PICTURES / name) as shown:
            assert taken.size == shown.size
            assert len(taken.convert("RGB").getcolors(2**24) or []) >= _COLOURS_MIN
        assert f"docs/images/{name}" in (ROOT / "README.md").read_text(encoding="utf-8")

    return take


async def test_a_code_its_sound_and_its_verification(
    served: ServedConsole, tenant: Tenant, clock: FakeClock, take: Take
) -> None:
    code = await tenant.make_code(
        intent={"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}}
    )
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/codes/{code['xr_id']}"
    page = await served.open(path, clock.now(), viewport=SIZE)

    await expect(page.locator("main")).to_contain_text("Everything was verified in this browser.")
    await page.evaluate("document.querySelector('audio').closest('section').scrollIntoView()")

    await take(page, "console-code.png")


async def test_an_audience_report(
    served: ServedConsole,
    tenant: Tenant,
    beside_core_url: Secret,
    clock: FakeClock,
    take: Take,
) -> None:
    clock.freeze()
    measured = await measure_tenant(tenant, beside_core_url)
    events = [
        RecordedEvent(clock.now() - timedelta(days=2 + number % 11, hours=1), number % 61, measured.alone["xr_id"])
        for number in range(300)
        if number % 7 > number % 3
    ]
    await asyncio.to_thread(store_events, beside_core_url, measured.integration["id"], events)
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/integrations"
    page = await served.open(f"{path}/{measured.integration['id']}/report", clock.now(), viewport=SIZE)

    await page.evaluate("document.querySelector('.chart svg').closest('section').scrollIntoView()")

    await take(page, "console-report.png")


async def test_what_an_emergency_stop_would_stop(
    served: ServedConsole, tenant: Tenant, clock: FakeClock, take: Take
) -> None:
    campaign = await tenant.make_campaign()
    for _ in range(3):
        await tenant.make_code(campaign_id=campaign["id"])
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/campaigns/{campaign['id']}/stop"

    await take(await served.open(path, clock.now(), viewport=SIZE), "console-stop.png")


async def test_a_code_that_a_browser_heard(
    served: ServedConsole,
    tenant: Tenant,
    clock: FakeClock,
    tmp_path: Path,
    take: Take,
) -> None:
    code = await tenant.make_code(
        intent={"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}}
    )
    sound = tmp_path / "tonight.wav"
    sound.write_bytes(render_token(code["broadcast_token"]))
    page = await served.open("/listen", clock.now(), viewport=SIZE)
    await expect(page.locator("#listen[data-ready]")).to_be_attached()

    await page.locator("#file").set_input_files(sound)
    await expect(page.locator("#heard")).to_contain_text("example.org")

    await take(page, "console-listen.png")
