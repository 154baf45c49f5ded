"""The self-test says what a device can hear, and concludes no more than it measured."""

from typing import Final

import pytest
from playwright.async_api import expect
from support.browser.chromium import Browsing
from support.browser.listening_page import UNPLUG, microphone_at, open_listening_page

pytestmark = pytest.mark.xdist_group("browser")


async def test_a_microphone_that_is_disconnected_during_the_self_test_gets_no_verdict(
    browsing: Browsing, listen_url: str
) -> None:
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(48_000))
    await open_listening_page(page, listen_url)
    result = page.locator("#test-result")
    await page.get_by_role("button", name="Test this device").click()
    await expect(page.locator("#progress")).to_contain_text("Listening")  # The page hears of the end only from now on.
    await page.evaluate(UNPLUG)
    await expect(result).to_be_empty()
    await expect(page.locator("#progress")).to_contain_text("was disconnected")


JUDGED: Final = {
    "cannot": {"rateHz": 16_000, "rises": {}},
    "hears": {"rises": {2_500: 0, 15_200: 30, 17_200: 30, 19_300: 12}},
    "doubtful": {"rises": {2_500: 30, 15_200: 30, 17_200: 30, 19_300: 11}},
    "undetermined": {"rises": {2_500: 0, 15_200: 0, 17_200: 0, 19_300: 0}},
    "undetermined, although a Code on the air may pass for two tones": {
        "rises": {2_500: 0, 15_200: 30, 17_200: 30, 19_300: 0}
    },
}


@pytest.mark.parametrize("verdict", list(JUDGED))
async def test_the_self_test_concludes_no_more_than_it_measured(
    browsing: Browsing, listen_url: str, verdict: str
) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    measured = {"rateHz": 48_000, "treatments": [], "bandDb": -100, "belowDb": -90, **JUDGED[verdict]}
    found = await page.evaluate(
        """async ({ rises, ...measured }) => {
          const { judge } = await import('/static/js/listen/self_test.js');
          return judge({ ...measured, rises: new Map(Object.entries(rises).map(([hz, db]) => [Number(hz), db])) });
        }""",
        measured,
    )
    assert found["verdict"] == verdict.partition(",")[0]
    names = [name for name, *_ in found["findings"]]
    assert ("reference_missed" in names) == verdict.startswith("undetermined")


async def test_the_self_test_says_of_such_a_microphone_that_it_cannot_hear_ultrasound(
    browsing: Browsing, listen_url: str
) -> None:
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(16_000))
    await open_listening_page(page, listen_url)
    await page.get_by_role("button", name="Test this device").click()
    result = page.locator("#test-result[data-verdict=cannot]")
    await expect(result).to_contain_text("This device cannot hear ultrasound")
    await expect(result.get_by_role("listitem")).to_have_text(["Codes need at least 44,100 samples a second."])


async def test_the_numbers_of_the_self_test_are_written_as_in_the_persons_language(
    browsing: Browsing, listen_url: str
) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)

    words = await page.evaluate(
        """async () => {
          const { describe } = await import('/static/js/listen/words.js');
          const tell = (language) => {
            document.documentElement.lang = language;
            return describe('finding', 'rate', { rate: 48000, highest: 24000 });
          };
          return [tell('en'), tell('fr')];
        }"""
    )

    assert "records 48,000 samples" in words[0]
    assert "records 48\u202f000 samples" in words[1]
