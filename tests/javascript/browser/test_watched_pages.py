"""The watched browser of these tests: it fails a test whose page complains."""

import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Error
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from support.browser.chromium import Browsing, watched
from support.processes.running_apps import served_in_thread

pytestmark = pytest.mark.xdist_group("browser")

POLICY = "default-src 'none'; script-src 'self'"
SCRIPTS = {
    "quiet": "document.title = 'ran'",
    "logs": "console.error('a fault'); document.title = 'ran'",
    "throws": "document.title = 'ran'; throw new Error('a fault')",
    "rejects": "document.title = 'ran'; Promise.reject(new Error('a fault'))",
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The URL of pages with faults."""

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        if name.endswith(".js"):
            return Response(SCRIPTS[name.removesuffix(".js")], media_type="text/javascript")
        inline = "<p style='color: red'>" if name == "inline" else f"<script src='/{name}.js' defer></script>"
        outside = "<img src='https://example.org/pixel.png'>" if name == "outside" else ""
        headers = {} if name == "outside" else {"Content-Security-Policy": POLICY}
        status = 409 if name == "refused" else 200
        page = f"<!doctype html>{outside or inline}"
        return HTMLResponse(page if status == 200 else "no", status, headers)

    with served_in_thread(Starlette(routes=[Route("/{name}", answer)])) as served:
        yield served


async def test_a_page_that_works_passes(browsing: Browsing, url: str) -> None:
    page = await browsing.open_page()
    await page.goto(f"{url}/quiet")
    assert await page.title() == "ran"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("logs", "error: a fault"),
        ("throws", "uncaught: a fault"),
        ("rejects", "uncaught: a fault"),
        ("inline", "Content Security Policy: style-src-attr blocked inline"),
        ("refused", "status of 409"),
        ("outside", "request to another machine: https://example.org/pixel.png"),
    ],
)
async def test_a_page_that_complains_fails(session_browser: Browser, url: str, name: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        await visit(session_browser, f"{url}/{name}")


async def visit(browser: Browser, url: str) -> None:
    async with watched(browser) as browsing:
        page = await browsing.open_page()
        await page.goto(url)
        await page.wait_for_load_state("networkidle")


async def test_a_tolerated_complaint_passes(browsing: Browsing, url: str) -> None:
    browsing.tolerate("status of 409")
    await (await browsing.open_page()).goto(f"{url}/refused")
    assert len(browsing.complaints) == 1


async def test_no_name_is_looked_up(browsing: Browsing) -> None:
    browsing.tolerate("another machine")
    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        await (await browsing.open_page()).goto("https://example.org/")
