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
from support.browser.film import Film
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


MOVING = "main-job.webp"
_MOVING_MS = 60_000
_FRAMES_MIN = 100
_BYTES_MAX = 1_500_000


@pytest.mark.timeout(300)  # Some seventy screenshots.
async def test_the_main_job_as_a_moving_picture(
    served: ServedConsole, tenant: Tenant, clock: FakeClock, tmp_path: Path
) -> None:
    """A link is issued and heard, and its campaign is stopped, all with the controls of the pages."""
    campaign = await tenant.make_campaign()
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/campaigns/{campaign['id']}"
    page = await served.open(path, clock.now(), viewport=SIZE, reduced_motion="reduce")
    film, sound = Film(page), tmp_path / "tonight.wav"

    async def listen(expected: str) -> None:
        await expect(page.locator("#listen[data-ready]")).to_be_attached()
        await film.show(2500)
        async with page.expect_file_chooser() as choosing:
            await film.press(page.locator("#file"))
        await (await choosing.value).set_files(sound)
        await expect(page.locator("#heard")).to_contain_text(expected)

    await film.show(3000)
    await film.press(page.get_by_role("link", name="Issue Codes"))
    sound.write_bytes(render_token(await _issue(film, page)))
    await film.scroll_to(page.locator(".qr-code a"))
    await film.show(2000)
    await film.press(page.locator(".qr-code a"))
    await listen("example.org")
    await film.show(7000)
    await page.goto(path)
    await film.show(2500)
    await film.scroll_to(page.locator("a.danger"))
    await film.press(page.locator("a.danger"))
    await page.wait_for_url("**/stop")
    await film.show(5000)
    await film.press(page.locator("button.danger"))
    await expect(page.locator(".notice[role=status]")).to_contain_text("1 Code was revoked")
    await film.show(4000)
    served.browsing.tolerate("status of 404")  # The Code was revoked.
    await page.goto("/listen")
    await listen("was revoked")
    await film.show(_MOVING_MS - sum(film.durations_ms))

    made = Path(CHOSEN or tmp_path) / MOVING
    film.save(made)
    for each in (made, PICTURES / MOVING):
        assert each.stat().st_size < _BYTES_MAX
        with Image.open(each) as moving:
            assert moving.size == (SIZE["width"], SIZE["height"])
            assert moving.n_frames >= _FRAMES_MIN
            moving.seek(moving.n_frames - 1)
            moving.load()
            assert moving.info["timestamp"] + moving.info["duration"] == _MOVING_MS
    assert f"docs/images/{MOVING}" in (ROOT / "README.md").read_text(encoding="utf-8")


async def _issue(film: Film, page: Page) -> str:
    """Fill in and send the form, scroll to the sound of the Code, and return the token that its page shows."""
    await page.wait_for_url("**/codes/issue?*")
    await film.show(2000)
    await film.type(page.locator("#field-url"), "https://example.org/tonight")
    await film.scroll_to(page.locator("#field-issuer"))
    await film.type(page.locator("#field-issuer"), "Nordlicht Evening Show")
    await expect(page.locator("#verdict")).to_have_attribute("data-would-issue", "yes")
    await film.show(3000)
    await film.press(page.locator("#issuance button:not([name])"))
    await page.wait_for_url("**/codes/xr_*")
    await expect(page.locator("main")).to_contain_text("Everything was verified in this browser.")
    await expect(page.locator("#spectrogram figcaption")).to_contain_text("seconds of sound")
    await film.show(5000)
    await film.scroll_to(page.locator("#spectrogram"))
    await film.show(4500)
    return str(await page.locator("#verification").get_attribute("data-token"))
