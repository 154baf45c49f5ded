"""The pages of Codes in a browser: what their scripts add, the rules of axe, and the keyboard."""

import asyncio
import re
from typing import Any

import pytest
from console.browser.conftest import ServedConsole
from playwright.async_api import expect
from support.browser.accessibility import NARROW, WIDE, WIDER, assert_no_page_breaks_a_rule
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_second_project

pytestmark = pytest.mark.xdist_group("browser")


async def test_at_most_100_codes_are_selected_over_the_pages_of_the_list(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, rival: Rival
) -> None:
    await tenant.make_quota(rival, 200)
    for count in (100, 3):
        assert (await tenant.api.post("/v1/codes/batch", json=tenant.code_body(count=count))).status == 201
    page = await served.open(codes, clock.now())
    status = page.locator("#selected")
    first = page.locator("input[name=xr_ids]").first
    await first.check()
    await expect(status).to_have_text("1 of at most 100 Codes selected.")

    await page.click("a[rel=next]")
    await expect(status).to_have_text("1 of at most 100 Codes selected.")
    await page.click("#every input")
    await expect(status).to_have_text("4 of at most 100 Codes selected.")
    await page.goto(codes)
    await expect(page.locator("input[name=xr_ids]").first).to_be_checked()
    await page.click("#every input")
    await expect(status).to_have_text("Select at most 100 Codes.")
    last = page.locator("input[name=xr_ids]").last
    await last.click()
    await expect(last).not_to_be_checked()

    await page.click("text=Revoke the selected Codes")
    await expect(page.locator("main")).to_contain_text("100 Codes will be revoked.")
    await page.click("button.danger")
    await expect(page.locator(".notice[role=status]")).to_contain_text("100 Codes were revoked")
    await expect(status).to_have_text("0 of at most 100 Codes selected.")
    await first.check()
    await page.reload()
    await expect(status).to_have_text("1 of at most 100 Codes selected.")


async def test_the_sounds_of_a_selection_are_downloaded_and_the_page_stays_usable(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    code = await tenant.make_code()
    page = await served.open(codes, clock.now())
    await expect(page.locator(".bulk")).to_be_hidden()
    link = await page.locator("tbody th a").inner_text()
    # The button that copies the id is no part of the name; the style sheet hides a middle behind the dots.
    name = f"{link} {code['xr_id'][:8]}…{code['xr_id'][8:]}"
    await page.get_by_role("checkbox", name=name, exact=True).check()
    await expect(page.locator("#every input")).to_be_checked()
    await page.click("text=Clear the selection")
    await expect(page.locator(".bulk")).to_be_hidden()
    await page.locator("#every input").check()

    for _ in range(2):
        async with page.expect_download() as downloading:
            await page.click("text=Download the sounds")
        assert (await downloading.value).suggested_filename == f"{tenant.project_id}.codes.zip"
    await page.click("text=Revoke the selected Codes")
    await expect(page.locator("h1")).to_have_text("Revoke the selected Codes")


async def test_without_a_script_a_selection_can_always_be_acted_on(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    code = await tenant.make_code()
    page = await served.open(codes, clock.now(), java_script_enabled=False)
    await expect(page.locator(".bulk")).to_be_visible()
    await page.locator("input[name=xr_ids]").check()

    await page.click("text=Revoke the selected Codes")

    await expect(page.locator("main")).to_contain_text(code["xr_id"])


async def test_rows_are_cards_on_a_narrow_screen(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    await tenant.make_code()
    page = await served.open(codes, clock.now(), viewport={"width": 390, "height": 844})
    label = "getComputedStyle(document.querySelector('td[data-label]'), '::before').content"

    assert await page.evaluate(label) == '"Status"'
    row = await page.locator("tbody tr").bounding_box()
    link = await page.locator("tbody th a").bounding_box()
    assert row is not None
    assert link is not None
    assert link["height"] < 30, "an address is a line"
    assert row["height"] < 400


async def test_a_signed_code_is_verified_before_ones_eyes(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    intent = {
        "type": "näive",
        "action": "o\u202epen",
        "resource": {"b": [1, 1.5, 1e21, 1e-7, "\u0000\U000e0041 "], "a": {}},
    }
    code = await tenant.make_code(intent=intent)

    page = await served.open(f"{codes}/{code['xr_id']}", clock.now())

    await expect(page.locator("#verification .conclusion")).to_have_text("Everything was verified in this browser.")
    assert await page.locator("#verification li.done").count() == 7
    signature = code["signed_code"]["key_id"]
    await expect(page.locator("[data-step=key] .outcome")).to_contain_text(signature)
    await expect(page.locator("[data-step=digest] .outcome")).to_have_text(code["signed_code"]["token_digest"])


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"issuer": "Radio Südlicht"}, "signature"),
        ({"expires_at": "2099-01-01T00:00:00.000Z"}, "signature"),
        ({"signature": "A" * 86}, "signature"),
        ({"version": 2}, "shape"),
        ({"more": 1}, "shape"),
        ({"signature": "A" * 85}, "shape"),
        ({"key_id": "another-key"}, "key"),
    ],
)
async def test_an_altered_code_fails_at_the_step_that_finds_it(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock, *, changes: dict[str, Any], step: str
) -> None:
    code = await tenant.make_code()
    altered = {**code, "signed_code": {**code["signed_code"], **changes}}
    served.client.core.answer(f"GET /v1/codes/{code['xr_id']}", 200, altered)

    page = await served.open(f"{codes}/{code['xr_id']}", clock.now())

    await expect(page.locator("#verification .conclusion")).to_contain_text("The verification failed.")
    await expect(page.locator(f"#verification [data-step={step}]")).to_have_class("failed")
    assert await page.locator("#verification li.failed").count() == 1


async def test_another_token_than_the_signed_one_fails(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    code = await tenant.make_code()
    served.client.core.answer(
        f"GET /v1/codes/{code['xr_id']}", 200, {**code, "broadcast_token": "brd_AAAAAAAAAAAAAAAA"}
    )

    page = await served.open(f"{codes}/{code['xr_id']}", clock.now())

    await expect(page.locator("#verification [data-step=digest]")).to_have_class("failed")


async def test_a_genuine_code_of_another_project_fails_on_this_page(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    served.browsing.tolerate("status of 404")  # Its sound is not here either.
    code, genuine = await tenant.make_code(), await (await make_second_project(tenant)).make_code()
    served.client.core.answer(f"GET /v1/codes/{code['xr_id']}", 200, genuine)

    page = await served.open(f"{codes}/{code['xr_id']}", clock.now())

    await expect(page.locator("#verification [data-step=record]")).to_have_class("failed")


async def test_without_keys_the_browser_says_nothing_about_the_code(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    served.browsing.tolerate("ERR_FAILED")
    code = await tenant.make_code()
    page = await served.open(codes, clock.now())
    await page.route("**/v1/keys/history", lambda route: route.abort())

    await page.goto(f"{codes}/{code['xr_id']}")

    await expect(page.locator("#verification .conclusion")).to_contain_text("it says nothing about the Code")


async def test_the_sound_is_played_and_drawn(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    served.browsing.tolerate("willReadFrequently")  # Only this test reads the picture.
    code = await tenant.make_code()

    page = await served.open(f"{codes}/{code['xr_id']}", clock.now())

    canvas = page.locator("#spectrogram canvas")
    await expect(canvas).to_have_attribute("aria-label", re.compile(r"^2\.35 seconds of sound"))
    dark = await page.evaluate(
        "() => { const c = document.querySelector('#spectrogram canvas');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i + 1] < 128) n += 1; return n / (d.length / 4); }"
    )
    assert 0.02 < dark < 0.6, "tones stand out from silence"
    assert await page.locator("#spectrogram .times li").all_text_contents() == ["0 s", "0.5 s", "1 s", "1.5 s", "2 s"]
    assert await page.locator("#spectrogram .frequencies li").all_text_contents() == [
        *("19.5 kHz", "18 kHz", "16.5 kHz", "15 kHz")
    ]
    ground = "() => [...document.querySelector('#spectrogram canvas').getContext('2d').getImageData(0, 0, 1, 1).data]"
    assert min(await page.evaluate(ground)) > 160
    await page.emulate_media(color_scheme="dark")
    # Asked from outside: a condition that the page itself repeats is an `eval`, which its policy forbids.
    async with asyncio.timeout(10):
        while max((await page.evaluate(ground))[:3]) >= 80:  # noqa: ASYNC110 - the page draws
            await asyncio.sleep(0.02)
    seconds, scheme, seekable = await page.evaluate(
        "async () => { const a = document.querySelector('audio'); a.muted = true; await a.play();"
        " return [a.duration, new URL(a.currentSrc).protocol, a.seekable.end(0)]; }"
    )
    assert 2.3 < seconds < 2.4
    assert (scheme, seekable) == ("blob:", seconds), "Safari asks for ranges, which the console's answers do not have"


async def test_the_list_fits_on_a_wide_screen_with_each_address_on_one_line(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    campaign = await tenant.make_campaign("Summer festival")
    intent = {"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight?x=1"}}
    await tenant.make_code(campaign_id=campaign["id"], issuer="Radio Nordlicht", intent=intent)

    page = await served.open(codes, clock.now(), viewport=WIDE)

    link = page.get_by_role("link", name="example.org/tonight?x=1")
    assert await link.evaluate("each => each.querySelector('bdi').getClientRects().length") == 1
    assert await page.locator(".scroll").evaluate("each => each.scrollWidth === each.clientWidth")


async def test_the_last_time_under_a_sound_fits_on_a_narrow_screen(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    """The fast sound ends just after one of its times."""
    code = await tenant.make_code()

    page = await served.open(f"{codes}/{code['xr_id']}?protocol=5", clock.now(), viewport=NARROW)

    await expect(page.locator("#spectrogram .times li")).to_have_text(["0 s", "0.5 s", "1 s", "1.5 s"])
    assert not await page.evaluate(WIDER)


async def test_a_sound_that_cannot_be_fetched_is_not_drawn(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    served.browsing.tolerate("status of 503")
    code = await tenant.make_code()
    served.client.core.refuse(f"GET /v1/codes/{code['xr_id']}/audio", 503, "audio_unavailable")

    page = await served.open(f"{codes}/{code['xr_id']}", clock.now())

    await expect(page.locator("#spectrogram figcaption")).to_have_text("The sound cannot be drawn at the moment.")
    await expect(page.locator("#spectrogram canvas")).to_be_hidden()


async def test_no_page_breaks_a_rule(served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock) -> None:
    hostile = "<b>" + "W" * 150
    long_link = {"type": "link", "action": "open", "resource": {"url": "https://example.org/" + "w" * 2000}}
    active, revoked = await tenant.make_code(issuer=hostile, intent=long_link), await tenant.make_code()
    await tenant.revoke(revoked["xr_id"])
    paths = [
        "",
        "?status=expired",
        "/issue",
        "/recover",
        f"/revoke?xr_ids={active['xr_id']}",
        f"/{active['xr_id']}",
        f"/{active['xr_id']}/revoke",
        f"/{revoked['xr_id']}",
        f"/{revoked['xr_id']}/revoke",
    ]
    await assert_no_page_breaks_a_rule(served.opener(clock.now()), [codes + path for path in paths])


async def test_what_scripts_write_is_in_the_persons_language(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    code = await tenant.make_code()
    page = await served.open(f"{codes}/{code['xr_id']}", clock.now(), locale="fr-FR")

    await expect(page.locator("[data-step=canonical] .outcome")).to_have_text(re.compile(r"^\d+\soctets$"))
    await expect(page.get_by_role("button", name=f"Copier {code['xr_id']}")).to_have_count(1)


async def test_a_code_is_issued_and_revoked_with_the_keyboard_alone(
    served: ServedConsole, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    page = await served.open(f"{codes}/issue", clock.now())
    await expect(page.locator("#field-url")).to_be_focused()
    await page.keyboard.type("https://example.org/")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/codes/xr_*")

    await page.focus("a.danger")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/revoke")
    await page.focus("button.danger")
    await page.keyboard.press("Enter")

    await expect(page.locator("#no-sound")).to_be_visible()
    await page.go_back()
    await expect(page.locator("main")).to_contain_text("there is nothing to revoke")
    [code] = await tenant.list_codes()
    assert code["status"] == "revoked"
