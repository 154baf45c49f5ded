"""A real browser for tests: Debian's Chromium driven by Playwright, whose pages may not complain about anything.

A test takes the fixture `page`, or `browsing` for several pages, people (contexts) or tolerated complaints. It fails if
a page logs an error, throws, violates its Content Security Policy, or requests something from another machine.
"""

import contextlib
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, WebError, async_playwright

_FLAGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-component-update",
    "--disable-background-networking",
    # No name is looked up, so no page of a test reaches another machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
_LOCAL_SCHEMES: Final = frozenset({"data", "blob", "about", "chrome-error"})
_LOCAL_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "::1"})
# Runs before the scripts of each page. The console also shows most violations, but not those of report-only policies.
_REPORT_VIOLATIONS: Final = """
addEventListener("securitypolicyviolation", (event) =>
  reportPolicyViolation(`${event.effectiveDirective} blocked ${event.blockedURI} at ${event.sourceFile}`));
"""
TIMEOUT_MS: Final = 15_000


@contextlib.asynccontextmanager
async def running_browser(*, microphone: Path | None = None) -> AsyncIterator[Browser]:
    """Run a browser without a window; its microphone plays a WAV file once from the start of each recording."""
    # The shell is Chromium without its windows. It opens a page in a fifth of the time, but plays no file as a
    # microphone would.
    name = "chromium-headless-shell" if microphone is None else "chromium"
    program = shutil.which(name)
    assert program is not None, f"there is no {name}; `make test-tools` installs it"
    flags = list(_FLAGS)
    if os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium's sandbox does not work for root.
    if microphone is not None:
        flags += ["--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={microphone}%noloop"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=flags)
        try:
            yield browser
        finally:
            await browser.close()


class Browsing:
    """The contexts of one test, each of a person of their own, and everything that their pages complain about."""

    def __init__(self, browser: Browser, *, base_url: str | None = None) -> None:
        self.browser: Final = browser
        self.complaints: Final[list[str]] = []
        self._base_url = base_url
        self._contexts: Final[list[BrowserContext]] = []
        self._tolerated: Final[list[re.Pattern[str]]] = []

    def tolerate(self, pattern: str) -> None:
        """Accept complaints that match, from now on and so far: `tolerate("status of 409")` for a refused form."""
        self._tolerated.append(re.compile(pattern))

    def remaining_complaints(self) -> list[str]:
        """Return the complaints that are not tolerated."""
        return [each for each in self.complaints if not any(pattern.search(each) for pattern in self._tolerated)]

    async def open_context(self, **options: Any) -> BrowserContext:
        """Return a context with its own cookies and storage; Playwright's options, such as `color_scheme="dark"`."""
        context = await self.browser.new_context(**{"base_url": self._base_url, "locale": "en-GB", **options})
        self._contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        context.on("console", self._hear_console)
        context.on("weberror", self._hear_error)
        context.on("request", self._see_request)
        await context.expose_function("reportPolicyViolation", self._hear_violation)
        await context.add_init_script(_REPORT_VIOLATIONS)
        return context

    async def open_page(self, **options: Any) -> Page:
        """Return a page in a new context."""
        return await (await self.open_context(**options)).new_page()

    async def close(self) -> None:
        """Close all contexts."""
        for context in self._contexts:
            await context.close()

    def _hear_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning", "assert"}:
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _hear_error(self, error: WebError) -> None:
        self.complaints.append(f"uncaught: {error.error}")

    def _hear_violation(self, violation: str) -> None:
        self.complaints.append(f"Content Security Policy: {violation}")

    def _see_request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in _LOCAL_SCHEMES and url.hostname not in _LOCAL_HOSTS:
            self.complaints.append(f"request to another machine: {request.url}")


@contextlib.asynccontextmanager
async def watched(browser: Browser, *, base_url: str | None = None) -> AsyncIterator[Browsing]:
    """Yield the contexts of one test, close them, and fail if a page complained."""
    browsing = Browsing(browser, base_url=base_url)
    try:
        yield browsing
    finally:
        await browsing.close()
    complaints = browsing.remaining_complaints()
    assert not complaints, f"the browser complains: {complaints}"
