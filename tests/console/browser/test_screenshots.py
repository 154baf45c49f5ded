"""The pictures of the console in the README.

`make screenshots` writes them anew. The test takes them each time, so that they can always be made.
"""

import asyncio
import io
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


# What the moving picture of the README shows, and for how many seconds each.
SCENES = (
    ("the empty list", 4),
    ("the form", 4),
    ("the address", 7),
    ("the Code", 8),
    ("its sound", 8),
    ("nothing heard yet", 4),
    ("heard and verified", 9),
    ("what a stop would revoke", 7),
    ("stopped", 4),
    ("heard again", 5),
)
MOVING = "main-job.webp"
_BYTES_MAX = 1_500_000


async def test_the_main_job_as_a_moving_picture(
    served: ServedConsole, tenant: Tenant, clock: FakeClock, tmp_path: Path
) -> None:
    """A link is issued and heard, and its campaign is stopped."""
    scenes: list[Image.Image] = []

    async def show(page: Page) -> None:
        scenes.append(Image.open(io.BytesIO(await page.screenshot())).convert("RGB"))

    project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    campaign = await tenant.make_campaign()
    page = await served.open(f"{project}/codes", clock.now(), viewport=SIZE)
    await show(page)
    await page.goto(f"{served.url}{project}/codes/issue?campaign_id={campaign['id']}")
    await show(page)
    await page.locator("[name=issuer]").fill("Radio Nordlicht")
    await page.locator("[name=url]").fill("https://example.org/tonight")
    await show(page)
    code = await tenant.make_code(
        campaign_id=campaign["id"],
        issuer="Radio Nordlicht",
        intent={"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}},
    )
    await page.goto(f"{served.url}{project}/codes/{code['xr_id']}")
    await expect(page.locator("main")).to_contain_text("Everything was verified in this browser.")
    await show(page)
    await page.evaluate("document.querySelector('audio').closest('section').scrollIntoView()")
    await show(page)

    sound = tmp_path / "tonight.wav"
    sound.write_bytes(render_token(code["broadcast_token"]))

    async def listen(expected: str, *, before: bool = False) -> None:
        await page.goto(f"{served.url}/listen")
        await expect(page.locator("#listen[data-ready]")).to_be_attached()
        if before:
            await show(page)
        await page.locator("#file").set_input_files(sound)
        await expect(page.locator("#heard")).to_contain_text(expected)
        await show(page)

    await listen("example.org", before=True)
    await page.goto(f"{served.url}{project}/campaigns/{campaign['id']}/stop")
    await show(page)
    await page.locator("form[method=post] button.danger").click()
    await page.wait_for_url("**/campaigns/**")
    await show(page)
    served.browsing.tolerate("status of 404")  # The Code was revoked.
    await listen("was revoked")

    path = Path(CHOSEN or tmp_path) / MOVING
    durations = [seconds * 1000 for _, seconds in SCENES]
    scenes[0].save(path, save_all=True, append_images=scenes[1:], duration=durations, loop=0, quality=70, method=4)
    with Image.open(path) as moving:
        assert (moving.n_frames, moving.size) == (len(SCENES), (SIZE["width"], SIZE["height"]))
    assert (path.stat().st_size < _BYTES_MAX, sum(durations)) == (True, 60_000)
    with Image.open(PICTURES / MOVING) as shown:
        assert shown.n_frames == len(SCENES)
    assert f"docs/images/{MOVING}" in (ROOT / "README.md").read_text(encoding="utf-8")
