"""What the page shows of an answer: the verified intent, or the reason why it shows no intent."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page
from support.codes.signed_answers import GENUINE, VECTORS

pytestmark = pytest.mark.xdist_group("browser")

REFUSED: Final = {each["name"]: each for each in VECTORS["refused"]}
TOKEN: Final = GENUINE["token"]
VECTORS_FOLDER: Final = Path(__file__).parents[3] / "docs" / "vectors"


async def text_of(heard: Locator) -> str:
    return " ".join((await heard.inner_text()).split())


async def open_at(browsing: Browsing, moment: str, **options: Any) -> Page:
    page = await browsing.open_page(**options)
    await page.clock.set_fixed_time(moment)
    return page


async def test_a_genuine_answer_is_shown_as_it_was_signed(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    heard = await hear(await open_at(browsing, GENUINE["now"]), listen_url, TOKEN)
    shown = await text_of(heard)
    intent = GENUINE["answer"]["intent"]
    assert shown.startswith("Verified")
    assert await heard.get_attribute("data-outcome") == "verified"
    assert await heard.locator("[data-slot=type]").inner_text() == intent["type"]
    assert await heard.locator("[data-slot=action]").inner_text() == intent["action"]
    code, xr_id = heard.locator("[data-slot=xr_id]"), GENUINE["answer"]["xr_id"]
    assert await code.inner_text() == xr_id
    assert await code.locator(".middle").inner_text() == xr_id[8:-4]
    await expect(code.get_by_role("button", name=f"Copy {xr_id}")).to_be_visible()
    assert stand_in.resolved == [TOKEN]


@pytest.mark.parametrize(
    "name",
    [
        "two minutes after its end",
        "signed by another published key than it names",
        "an outer intent that was not signed",
    ],
)
async def test_an_expired_forged_or_altered_answer_shows_no_intent(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, name: str
) -> None:
    each = REFUSED[name]
    stand_in.keys, stand_in.answers[each["token"]] = VECTORS["keys"], each["answer"]
    heard = await hear(await open_at(browsing, each["now"]), listen_url, each["token"])
    assert await heard.get_attribute("data-outcome") == "unverifiable"
    shown = await text_of(heard)
    assert "could not be verified" in shown
    assert each["answer"]["intent"]["action"] not in shown


STATUSES: Final = {
    404: ("codeUnavailable", "Code not found"),
    410: ("expired", "The Code has expired"),
    429: ("rateLimited", "Too many requests"),
    503: ("temporarilyUnavailable", "cannot answer at the moment"),
    400: ("unverifiable", "could not be verified"),
}


@pytest.mark.parametrize("status", list(STATUSES))
async def test_each_failure_of_the_closed_set_has_its_words(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, status: int
) -> None:
    browsing.tolerate(f"status of {status}")
    stand_in.statuses[TOKEN] = status
    heard = await hear(await browsing.open_page(), listen_url, TOKEN)
    reason, words = STATUSES[status]
    assert await heard.get_attribute("data-outcome") == reason
    shown = await text_of(heard)
    assert words in shown
    assert "PLANTED" not in shown


async def test_a_lost_connection_is_said_and_can_be_tried_again(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    browsing.tolerate("ERR_FAILED")
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await open_at(browsing, GENUINE["now"])
    await page.route("**/v1/resolve/*", lambda route: route.abort())
    heard = await hear(page, listen_url, TOKEN)
    assert await heard.get_attribute("data-outcome") == "network"
    await page.unroute("**/v1/resolve/*")
    await heard.get_by_role("button", name="Try again").press("Enter")
    await expect(page.locator("#heard article")).to_have_attribute("data-outcome", "verified")
    await expect(page.locator("#heard article")).to_be_focused()


END: Final = GENUINE["answer"]["resolution_proof"]["expires_at"]


async def test_an_answer_that_has_ended_is_past_and_its_link_goes(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    """The Code may be revoked by then, so its link opens only after another check."""
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await open_at(browsing, GENUINE["now"])
    heard = await hear(page, listen_url, TOKEN)
    await heard.get_by_role("link", name="Open example.org").focus()
    await page.clock.set_fixed_time(END)
    await expect(heard).to_have_attribute("data-outcome", "past")
    await expect(heard.get_by_role("link")).to_have_count(0)
    await expect(heard).to_be_focused()
    shown = await text_of(heard)
    assert shown.startswith("No longer current")
    assert "Verified" not in shown
    assert GENUINE["answer"]["intent"]["resource"]["url"] in shown, "what it said can still be read"
    for stop in (heard.get_by_role("button", name="Copy"), heard.locator("summary")):
        await page.keyboard.press("Tab")
        await expect(stop).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(heard.get_by_role("button", name="Check again")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(heard).to_have_attribute("data-outcome", "verified")
    await expect(heard.get_by_role("link", name="Open example.org")).to_be_visible()
    assert stand_in.resolved == [TOKEN, TOKEN]


async def test_a_code_that_is_heard_again_is_resolved_again_once_its_answer_is_past(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, write_sound: Any
) -> None:
    browsing.tolerate("status of 404")
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await open_at(browsing, GENUINE["now"])
    heard = await hear(page, listen_url, TOKEN)
    stand_in.statuses[TOKEN] = 404
    await page.clock.set_fixed_time(END)
    await expect(heard).to_have_attribute("data-outcome", "past")
    for chosen in ([], write_sound(TOKEN)):
        await page.locator("#file").set_input_files(chosen)
    await expect(heard).to_have_attribute("data-outcome", "codeUnavailable")
    await expect(page.locator("#heard article")).to_have_count(1)


@pytest.mark.parametrize(("status", "outcome"), [(None, "network"), (500, "temporarilyUnavailable")])
async def test_a_code_that_is_heard_again_after_an_outage_is_resolved_again(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, write_sound: Any, status: int | None, outcome: str
) -> None:
    """Nobody has to press a button at a venue whose network comes and goes."""
    browsing.tolerate("ERR_FAILED|status of 500")
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await open_at(browsing, GENUINE["now"])
    failing = "**/v1/resolve/*"
    await page.route(failing, lambda route: route.abort() if status is None else route.fulfill(status=status))
    heard = await hear(page, listen_url, TOKEN)
    await expect(heard).to_have_attribute("data-outcome", outcome)
    await page.unroute(failing)
    for chosen in ([], write_sound(TOKEN)):
        await page.locator("#file").set_input_files(chosen)
    await expect(heard).to_have_attribute("data-outcome", "verified")
    await expect(page.locator("#heard article")).to_have_count(1)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_code_that_is_heard_during_the_pause_that_the_service_asked_for_waits(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any, write_sound: Any, status: int
) -> None:
    """All phones at a venue may share one address, and so one limit."""
    browsing.tolerate(f"status of {status}")
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    stand_in.statuses[TOKEN] = status
    page = await browsing.open_page()
    await page.clock.set_fixed_time(GENUINE["now"])
    heard = await hear(page, listen_url, TOKEN)
    stand_in.statuses.clear()
    for pause_s, outcome in ((59, STATUSES[status][0]), (60, "verified")):
        await page.clock.set_fixed_time(datetime.fromisoformat(GENUINE["now"]) + timedelta(seconds=pause_s))
        for chosen in ([], write_sound(TOKEN)):
            await page.locator("#file").set_input_files(chosen)
        await expect(page.locator("#file-progress")).to_be_empty()
        await expect(heard).to_have_attribute("data-outcome", outcome)
    assert stand_in.resolved == [TOKEN, TOKEN]


async def test_a_fast_clock_leaves_half_a_minute_to_open_a_link(
    browsing: Browsing, hear: Any, listen_url: str, stand_in: Any
) -> None:
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await browsing.open_page()
    await page.clock.install(time=END)
    heard = await hear(page, listen_url, TOKEN)
    await page.clock.fast_forward("00:02")
    await expect(heard).to_have_attribute("data-outcome", "verified")
    await page.clock.fast_forward("00:30")
    await expect(heard).to_have_attribute("data-outcome", "past")


# Hears 50 Codes at once, and another one while the oldest of those that are shown is resolved.
HEAR_FIFTY: Final = """async () => {
  const { Heard } = await import('/static/js/listen/heard.js');
  const tokens = Array.from({ length: 50 }, (_, number) => `brd_${String(number).padStart(16, '0')}`);
  const [resolved, measured] = [[], []];
  let [underWay, underWayMax] = [0, 0];
  const receiver = {
    async resolve(token) {
      resolved.push(token);
      underWay += 1;
      underWayMax = Math.max(underWayMax, underWay);
      await new Promise((resolve) => setTimeout(resolve));
      underWay -= 1;
      if (token === tokens[30]) heard.add('brd_one-code-more...');
      const policy = { audienceMeasurement: false };
      return { token, intent: { type: 't', action: 'a', resource: {} }, policy, xrId: token, expiresAt: new Date() };
    },
  };
  const consent = { report: ({ token }) => measured.push(token) };
  const list = document.getElementById('heard');
  const heard = new Heard(list, receiver, consent);
  for (const token of tokens) heard.add(token);
  while (list.querySelector('[data-outcome=resolving]')) await new Promise((resolve) => setTimeout(resolve));
  return { tokens, resolved, measured, underWayMax, articles: list.children.length };
}"""


async def test_of_many_codes_at_once_those_that_stay_on_the_page_are_resolved_a_few_at_a_time(
    browsing: Browsing, listen_url: str
) -> None:
    """A recording of ten minutes holds up to 396 Codes. What has left the page is not measured either."""
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    found = await page.evaluate(HEAR_FIFTY)
    shown = [*found["tokens"][30:], "brd_one-code-more..."]
    assert (found["articles"], found["underWayMax"]) == (20, 3)
    assert sorted(found["resolved"]) == sorted(shown)
    assert sorted(found["measured"]) == sorted(shown[1:])


async def test_the_page_speaks_french(browsing: Browsing, hear: Any, listen_url: str, stand_in: Any) -> None:
    stand_in.statuses[TOKEN] = 410
    browsing.tolerate("status of 410")
    page = await browsing.open_page(locale="fr-FR")
    heard = await hear(page, listen_url, TOKEN)
    assert "Le Code a expiré" in await text_of(heard)
    assert await page.locator("html").get_attribute("lang") == "fr"


async def test_every_published_vector_is_judged_alike_in_the_browser(browsing: Browsing, listen_url: str) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    judged = await page.evaluate(
        """async ({ keys, cases, refused }) => {
          const { readKeySet } = await import('/static/receiver/verifying/keys.js');
          const { verifyAnswer } = await import('/static/receiver/verifying/verification.js');
          const encode = (value) => new TextEncoder().encode(JSON.stringify(value));
          const keySet = await readKeySet(encode(keys));
          const judge = (each) => verifyAnswer(encode(each.answer), each.token, keySet, Date.parse(each.now))
            .then((resolution) => resolution.xrId, (failure) => failure.reason);
          return { cases: await Promise.all(cases.map(judge)), refused: await Promise.all(refused.map(judge)) };
        }""",
        {name: VECTORS[name] for name in ("keys", "cases", "refused")},
    )
    assert judged["cases"] == [each["answer"]["xr_id"] for each in VECTORS["cases"]]
    assert judged["refused"] == ["unverifiable"] * len(VECTORS["refused"])
    assert len(VECTORS["refused"]) > 20


async def test_a_browser_without_ed25519_is_told(session_browser: Browser, browsing: Browsing, listen_url: str) -> None:
    assert session_browser.is_connected()
    page = await browsing.open_page()
    await page.add_init_script(
        "SubtleCrypto.prototype.generateKey = () => Promise.reject(new DOMException('', 'NotSupportedError'))"
    )
    await open_listening_page(page, listen_url)
    await expect(page.locator("#obstacle")).to_contain_text("cannot verify Codes")
    await expect(page.locator("#start")).to_be_disabled()


async def test_every_published_text_has_its_canonical_form_in_the_browser(browsing: Browsing, listen_url: str) -> None:
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    texts = json.loads((VECTORS_FOLDER / "canonical-json.json").read_text(encoding="utf-8"))
    judged = await page.evaluate(
        """async ({ accepted, refused, refused_bytes }) => {
          const { parse } = await import('/static/receiver/verifying/strict_json.js');
          const { canonicalizeIntent } = await import('/static/receiver/verifying/shapes.js');
          const encode = (text) => new TextEncoder().encode(text);
          const decodeHex = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (each) => parseInt(each, 16));
          const judge = (act) => { try { act(); return 'accepted'; } catch (failure) { return failure.reason; } };
          return {
            accepted: accepted.map((each) => canonicalizeIntent(parse(encode(each.input)))),
            refused: refused.map((each) => judge(() => canonicalizeIntent(parse(encode(each.input))))),
            refused_bytes: refused_bytes.map((each) => judge(() => parse(decodeHex(each.input_hex)))),
          };
        }""",
        texts,
    )
    assert judged["accepted"] == [each["canonical"] for each in texts["accepted"]]
    for name in ("refused", "refused_bytes"):
        assert judged[name] == ["unverifiable"] * len(texts[name])
        assert texts[name]
