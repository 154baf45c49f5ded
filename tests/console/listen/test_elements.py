"""What scripts read of a page: they stop at what it lacks, and say what that is."""

import pytest
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page

pytestmark = pytest.mark.xdist_group("browser")


async def test_a_script_names_what_its_page_lacks(browsing: Browsing, listen_url: str) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    said = await page.evaluate(
        """async () => {
          const { getData, getElement } = await import('/static/js/elements.js');
          const place = getElement(HTMLElement, '#listen');
          const acts = [
            () => getData(place, 'coreUrl'),
            () => getElement(HTMLElement, '#absent'),
            () => getElement(HTMLInputElement, '#heard'),
            () => getElement(HTMLElement, '#listen', place),
            () => getData(place, 'absent'),
          ];
          return acts.map((act) => {
            try {
              return act();
            } catch (error) {
              return error.message;
            }
          });
        }"""
    )
    core_url, *lacks = said
    assert core_url.startswith("http://127.0.0.1:")
    assert lacks == [f"The page lacks its {name}." for name in ("#absent", "#heard", "#listen", "absent")]
