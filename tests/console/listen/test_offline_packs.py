"""The page keeps offline packs, and shows what they say only while the service cannot be reached."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Locator, Page, expect
from support.browser.accessibility import WIDE, find_broken_on_screens
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page

pytestmark = pytest.mark.xdist_group("browser")

VECTORS: Final = json.loads(
    (Path(__file__).parents[3] / "docs" / "vectors" / "offline-pack-v1.json").read_text(encoding="ascii")
)
PACK: Final[dict[str, Any]] = VECTORS["packs"]["campaign"]
NEWER: Final[dict[str, Any]] = VECTORS["packs"]["newer, without the first Code"]
TOKEN: Final[str] = VECTORS["lookups"][0]["token"]
INTENT: Final = VECTORS["lookups"][0]["found"]["intent"]
WRITE_TIME: Final = "([at, locale]) => new Date(at).toLocaleString(locale, {dateStyle: 'medium', timeStyle: 'medium'})"
# Later than both, and before the end of either.
NOW: Final = NEWER["issued_at"]


async def open_offline(browsing: Browsing, url: str, stand_in: Any, now: str = NOW, **options: Any) -> Page:
    """Return the page, whose service publishes its keys, and resolves nothing."""
    browsing.tolerate("ERR_FAILED")
    stand_in.keys = VECTORS["keys"]
    page = await browsing.open_page(**options)
    await page.clock.set_fixed_time(now)
    await page.route("**/v1/resolve/*", lambda route: route.abort())
    await open_listening_page(page, url)
    return page


async def add(page: Page, content: object, state: str) -> None:
    """Choose a file with this content, and await what the page says of it."""
    text = content if isinstance(content, str) else json.dumps(content)
    file: Any = {"name": "pack.json", "mimeType": "application/json", "buffer": text.encode()}
    await page.locator("#pack").set_input_files(file)
    await expect(page.locator("#pack-progress")).to_have_attribute("data-state", state)


async def hear(page: Page, sound: Path, outcome: str) -> Locator:
    await page.locator("#file").set_input_files(sound)
    heard = page.locator("#heard article")
    await expect(heard).to_have_attribute("data-outcome", outcome)
    return heard


@pytest.fixture
def sound(write_sound: Callable[[str], Path]) -> Path:
    """The sound of a Code that is in the pack."""
    return write_sound(TOKEN)


async def test_an_answer_from_a_pack_says_that_it_is_one_and_as_of_when(
    browsing: Browsing, listen_url: str, stand_in: Any, sound: Path
) -> None:
    page = await open_offline(browsing, listen_url, stand_in)
    await hear(page, sound, "network")
    await add(page, PACK, "added")
    await page.get_by_role("button", name="Try again").click()
    heard = await hear(page, sound, "offline")
    as_of = await page.evaluate(WRITE_TIME, [PACK["issued_at"], "en-GB"])
    await expect(heard.get_by_role("heading")).to_have_text(f"From an offline pack, as of {as_of}")
    shown = await heard.inner_text()
    assert "might have been revoked since" in shown
    assert "Verified" not in shown
    assert await heard.locator("[data-slot=action]").inner_text() == INTENT["action"]
    await expect(heard.locator("details, [data-slot=measured]")).to_have_count(0)
    await expect(page.locator("#packs li")).to_have_count(1)


async def test_a_pack_is_kept_for_the_next_visit_without_any_network(
    browsing: Browsing, listen_url: str, stand_in: Any, sound: Path
) -> None:
    page = await open_offline(browsing, listen_url, stand_in)
    await add(page, PACK, "added")
    await page.route("**/v1/keys/history", lambda route: route.abort())
    await open_listening_page(page, listen_url)
    await expect(page.locator("#packs li")).to_have_count(1)
    await hear(page, sound, "offline")
    await page.get_by_role("button", name="Forget all packs").press("Enter")
    await expect(page.locator("#pack-progress")).to_have_attribute("data-state", "forgotten")
    await expect(page.locator("#pack")).to_be_focused()
    await open_listening_page(page, listen_url)
    await expect(page.locator("#packs li")).to_have_count(0)
    await hear(page, sound, "network")


async def test_another_answer_of_the_service_stands(
    browsing: Browsing, listen_url: str, stand_in: Any, sound: Path
) -> None:
    browsing.tolerate("status of 404")
    page = await open_offline(browsing, listen_url, stand_in)
    await page.unroute("**/v1/resolve/*")
    stand_in.statuses[TOKEN] = 404
    await add(page, PACK, "added")
    await hear(page, sound, "codeUnavailable")


async def test_a_newer_pack_without_the_code_the_end_and_a_clock_set_back_silence_a_pack(
    browsing: Browsing, listen_url: str, stand_in: Any, sound: Path
) -> None:
    page = await open_offline(browsing, listen_url, stand_in)
    await add(page, PACK, "added")
    await hear(page, sound, "offline")
    before = "2026-11-01T00:00:00Z"
    for now in (PACK["valid_until"], before):
        await page.clock.set_fixed_time(now)
        await open_listening_page(page, listen_url)
        await hear(page, sound, "network")
    await page.clock.set_fixed_time(NOW)
    await open_listening_page(page, listen_url)
    await hear(page, sound, "offline")
    await add(page, NEWER, "added")
    await open_listening_page(page, listen_url)
    await expect(page.locator("#packs li")).to_have_count(1)
    await add(page, PACK, "not_needed")
    await hear(page, sound, "network")


async def test_a_newer_pack_replaces_an_older_one_for_good(browsing: Browsing, listen_url: str, stand_in: Any) -> None:
    page = await open_offline(browsing, listen_url, stand_in)
    await add(page, PACK, "added")
    for content, state in ((VECTORS["packs"]["newer, with the first Code"], "added"), (PACK, "not_needed")):
        await add(page, content, state)
        await expect(page.locator("#packs li")).to_have_count(1)
    names = await page.evaluate(
        """() => new Promise((resolve) => {
          const opening = indexedDB.open("soundmark-packs");
          opening.onsuccess = () => {
            const asking = opening.result.transaction("kept").objectStore("kept").getAllKeys();
            asking.onsuccess = () => resolve(asking.result);
          };
        })"""
    )
    assert sorted(names) == ["keys", VECTORS["packs"]["newer, with the first Code"]["pack_id"]]


async def test_of_several_files_each_is_added_or_said_not_to_be(
    browsing: Browsing, listen_url: str, stand_in: Any
) -> None:
    page = await open_offline(browsing, listen_url, stand_in)
    await add(page, NEWER, "added")
    contents = {"old": PACK, "odd": {}, "other": VECTORS["packs"]["newer, of another campaign, empty"]}

    await page.locator("#pack").set_input_files(
        [
            {"name": f"{name}.json", "mimeType": "application/json", "buffer": json.dumps(content).encode()}
            for name, content in contents.items()
        ]
    )

    await expect(page.locator("#pack-progress p")).to_have_text(
        [re.compile(each) for each in ("^old.json: .* newer one", "^odd.json: .* genuine", "^other.json: .* was added")]
    )
    await expect(page.locator("#packs li")).to_have_count(2)


async def test_an_answer_from_a_pack_is_past_after_two_minutes(
    browsing: Browsing, listen_url: str, stand_in: Any, sound: Path
) -> None:
    """Its link goes, and checking again asks the service first."""
    page = await open_offline(browsing, listen_url, stand_in, PACK["issued_at"])
    await add(page, PACK, "added")
    heard = await hear(page, sound, "offline")
    await expect(heard.get_by_role("link")).to_have_count(1)
    await page.clock.set_fixed_time(PACK["issued_at"].replace("T10:00", "T10:03"))
    await expect(heard).to_have_attribute("data-outcome", "past")
    await expect(heard.get_by_role("link")).to_have_count(0)
    await heard.get_by_role("button", name="Check again").click()
    await expect(heard).to_have_attribute("data-outcome", "offline")


async def test_what_is_not_a_genuine_pack_is_not_added(browsing: Browsing, listen_url: str, stand_in: Any) -> None:
    page = await open_offline(browsing, listen_url, stand_in)
    for content in ({**PACK, "valid_until": "2027-01-01T00:00:00.000Z"}, "{}", "", VECTORS["refused"][0]["text"]):
        await add(page, content, "not_genuine")
    await expect(page.locator("#packs li")).to_have_count(0)
    await page.evaluate(
        """() => {
          const files = new DataTransfer();
          files.items.add(new File([new Uint8Array(32 * 1024 * 1024 + 1)], "pack.json"));
          const input = document.querySelector("#pack");
          input.files = files.files;
          input.dispatchEvent(new Event("change"));
        }"""
    )
    await expect(page.locator("#pack-progress")).to_have_attribute("data-state", "too_large")
    await page.route("**/v1/keys/history", lambda route: route.abort())
    await open_listening_page(page, listen_url)
    await add(page, PACK, "keys_missing")
    await page.unroute("**/v1/keys/history")
    await page.clock.set_fixed_time(PACK["valid_until"])
    await add(page, PACK, "ended")


async def test_a_file_that_cannot_be_read_is_said_to_be_and_the_others_are_added(
    browsing: Browsing, listen_url: str, stand_in: Any, tmp_path: Path
) -> None:
    """Browsers refuse to read a file that changed after it was chosen."""
    page = await open_offline(browsing, listen_url, stand_in)
    chosen = [tmp_path / "broken.json", tmp_path / "pack.json"]
    for file in chosen:
        file.write_text(json.dumps(NEWER))

    def break_file() -> None:  # Playwright sets an attribute of it, which a method does not take.
        chosen[0].unlink()

    # Before the page's own listener, which reads the files.
    await page.expose_function("breakFile", break_file)
    await page.evaluate(
        """() => document.addEventListener("change", async (event) => {
          if (!event.isTrusted) return;
          event.stopPropagation();
          await breakFile();
          event.target.dispatchEvent(new Event("change", { bubbles: true }));
        }, true)"""
    )

    await page.locator("#pack").set_input_files(chosen)

    await expect(page.locator("#pack-progress p")).to_have_text(
        [re.compile("^broken.json: .* could not read .* again"), re.compile("^pack.json: .* was added")]
    )


async def test_the_page_with_packs_breaks_no_rule_of_accessibility(
    browsing: Browsing, listen_url: str, stand_in: Any, sound: Path
) -> None:
    found = {}
    for language in ("en-GB", "fr-FR"):
        page = await open_offline(browsing, listen_url, stand_in, locale=language, viewport=WIDE)
        await add(page, PACK, "added")
        heard = await hear(page, sound, "offline")
        assert ("pack hors ligne" in await heard.inner_text()) == (language == "fr-FR")
        as_of = await page.evaluate(WRITE_TIME, [PACK["issued_at"], language])
        await expect(heard.get_by_role("heading")).to_contain_text(as_of)
        found[language] = await find_broken_on_screens(page)
    assert found == {"en-GB": {}, "fr-FR": {}}
