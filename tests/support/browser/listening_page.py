"""The console's listening page in a browser."""

from playwright.async_api import Page, expect


async def open_listening_page(page: Page, url: str) -> None:
    """Open the page and wait until its script has begun."""
    await page.goto(url)
    await expect(page.locator("#listen[data-ready]")).to_be_attached()
