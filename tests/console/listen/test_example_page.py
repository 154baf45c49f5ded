"""examples/listening-page: one file beside the receiver, which verifies what it hears against a real Core."""

import shutil
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from playwright.async_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.browser.chromium import Browsing, running_browser, watched
from support.codes.sounds import render_token
from support.processes.running_apps import served_in_thread

from soundmark.core.app import create_app
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.migrations import migrate

ROOT: Final = Path(__file__).parents[3]
DEFAULT: Final = "http://127.0.0.1:8080"
LINK: Final = {"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}}
SCRIPT: Final = {"type": "link", "action": "open", "resource": {"url": "javascript:alert(1)"}}

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def core_url(cluster: RunningCluster) -> Iterator[str]:
    """A Core of its own."""
    url = cluster.create_role_and_database("core_of_the_example")
    migrate(url, "soundmark.core")
    with served_in_thread(create_app(core_settings(url))) as served:
        yield served


@pytest.fixture
def page_url(core_url: str, tmp_path: Path) -> Iterator[str]:
    """The page as its description says: beside a copy of the receiver, with the service's address in it."""
    shutil.copytree(ROOT / "sdk" / "js" / "src", tmp_path / "soundmark-receiver")
    text = (ROOT / "examples" / "listening-page" / "index.html").read_text("utf-8")
    assert text.count(DEFAULT) == 1
    (tmp_path / "index.html").write_text(text.replace(DEFAULT, core_url), "utf-8")
    with served_in_thread(Starlette(routes=[Mount("/", StaticFiles(directory=tmp_path, html=True))])) as url:
        yield url


def make_codes(core_url: str) -> list[dict[str, Any]]:
    """Return a Code with a link, one with a script for a link, and a revoked one."""
    headers = {"Authorization": f"Bearer {OPERATOR_TOKEN}"}
    with httpx2.Client(base_url=core_url, headers=headers, trust_env=False) as operator:

        def make(path: str, **body: Any) -> Any:
            return operator.post(path, json=body).raise_for_status().json()

        organization_id = make("/v1/organizations", name="Radio Nordlicht")["id"]
        tenant = {"organization_id": organization_id}
        project_id = make("/v1/projects", **tenant, name="Morning show")["id"]
        request = {**tenant, "project_id": project_id, "issuer": "Radio", "expires_at": "2999-01-01T00:00:00.000Z"}
        codes = [make("/v1/codes", **request, intent=intent) for intent in (LINK, SCRIPT, LINK)]
        operator.post(f"/v1/codes/{codes[2]['xr_id']}/revoke", params=tenant).raise_for_status()
    return codes


async def test_it_shows_what_is_verified_and_opens_nothing(browsing: Browsing, core_url: str, page_url: str) -> None:
    browsing.tolerate("status of 404")
    page = await browsing.open_page()
    await page.goto(page_url)
    shown = []
    for number, code in enumerate(make_codes(core_url), start=1):
        sound = {"name": "code.wav", "mimeType": "audio/wav", "buffer": render_token(code["broadcast_token"])}
        await page.locator("#file").set_input_files(sound)  # type: ignore[arg-type]  # a payload, as its type says
        await expect(page.locator("#heard li")).to_have_count(number)
        shown.append(page.locator("#heard li").first)
        if number == 1:
            link = page.locator("#heard a")
            assert await link.get_attribute("href") == "https://example.org/tonight"
            assert await link.get_attribute("rel") == "noopener noreferrer"
            await expect(shown[0]).to_have_attribute("data-xr-id", code["xr_id"])
    await expect(page.locator("#heard li").nth(0)).to_have_text("This Code is not valid.")
    await expect(page.locator("#heard li").nth(1)).to_have_text("link: open")
    assert await page.locator("#heard a").count() == 1
    assert page.url.startswith(page_url)

    await page.evaluate("document.querySelector('#heard li').id = 'former'")
    await page.locator("#file").set_input_files(sound)  # type: ignore[arg-type]  # as above
    await expect(page.locator("#former")).to_have_count(0)
    await expect(page.locator("#heard li")).to_have_count(3)


async def test_a_file_without_a_code_and_one_that_is_no_sound_are_said(browsing: Browsing, page_url: str) -> None:
    page = await browsing.open_page()
    await page.goto(page_url)
    silence = render_token("brd_" + "A" * 16)[:44] + bytes(96_000)
    for content, said in ((silence, "No Code was heard."), (b"not a sound", "This file cannot be read.")):
        await page.locator("#file").set_input_files({"name": "sound.wav", "mimeType": "audio/wav", "buffer": content})
        await expect(page.locator("#status")).to_have_text(said)


async def test_without_a_microphone_it_says_so(browsing: Browsing, page_url: str) -> None:
    page = await browsing.open_page()
    await page.goto(page_url)
    await page.locator("#listen").click()
    await expect(page.locator("#status")).to_have_text("The microphone cannot be used.")


async def test_two_clicks_ask_for_the_microphone_once(browsing: Browsing, page_url: str) -> None:
    """Otherwise nothing would switch off the first one."""
    page = await browsing.open_page()
    await page.add_init_script(
        """window.asked = 0;
        navigator.mediaDevices.getUserMedia = async () => {
          window.asked += 1;
          await new Promise((resolve) => (window.refuse = resolve));
          throw new DOMException('', 'NotAllowedError');
        };"""
    )
    await page.goto(page_url)
    await page.evaluate("for (const _ of [1, 2]) document.querySelector('#listen').click()")
    await page.evaluate("window.refuse()")
    await expect(page.locator("#status")).to_have_text("The microphone cannot be used.")
    await expect(page.locator("#listen")).to_be_enabled()
    assert await page.evaluate("window.asked") == 1


async def test_it_hears_with_the_microphone_until_it_is_stopped(core_url: str, page_url: str, tmp_path: Path) -> None:
    code, *_ = make_codes(core_url)
    sound = render_token(code["broadcast_token"])
    with wave.open(str(tmp_path / "broadcast.wav"), "wb") as writer:
        writer.setparams((1, 2, 48_000, 0, "NONE", ""))
        writer.writeframes((bytes(96_000) + sound[44:]) * 2 + bytes(96_000))
    async with running_browser(microphone=tmp_path / "broadcast.wav") as browser, watched(browser) as browsing:
        page = await browsing.open_page(permissions=["microphone"])
        await page.goto(page_url)
        await page.locator("#listen").click()
        await expect(page.locator("#status")).to_have_text("Listening …")
        await expect(page.locator("#heard li")).to_have_attribute("data-xr-id", code["xr_id"], timeout=30_000)
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator("#listen")).to_have_text("Use the microphone")
