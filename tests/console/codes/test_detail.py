"""The page of one Code."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from console.conftest import console_settings, running_console
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN, core_settings
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.kit.crypto.secret import Secret

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture
async def mute(database_url: Secret, api: Api, clock: FakeClock) -> AsyncIterator[ConsoleClient]:
    """A console in front of a Core that reaches neither Audio nor Audience."""
    assert api is not None, "the signing keys are there"
    async with running_core(core_settings(database_url), clock) as other:
        settings = console_settings(operator_token=OPERATOR_TOKEN)
        async with running_console(settings, other, clock) as client:
            yield client.sign_in_as_operator(clock.now())


async def test_every_member_of_a_code_is_shown(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    campaign, integration = await tenant.make_campaign(), await tenant.make_integration()
    audience = {"enabled": True, "integration_id": integration["id"]}
    code = await tenant.make_code(campaign_id=campaign["id"], audience=audience)

    page = await operator.get(f"{codes}/{code['xr_id']}")

    for name in ("xr_id", "organization_id", "project_id", "campaign_id", "issuer", "broadcast_token",
                 "broadcast_frame", "audience_integration_id"):  # fmt: skip
        assert str(code[name]) in page.text, name
    assert page.find(".//span[@class='status status-active']").text == "active"
    assert json.loads(str(page.find(".//pre[@id='signed-code']").text)) == code["signed_code"]


async def test_a_code_begins_with_what_it_does_and_ends_with_its_revocation(
    operator: ConsoleClient, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    clock.freeze()
    campaign = await tenant.make_campaign("The breakfast show")
    resource = {"url": "https://example.org/tonight", "title": "Tonight"}
    intent = {"type": "link", "action": "open", "resource": resource}
    code = await tenant.make_code(intent=intent, campaign_id=campaign["id"], lifetime_s=6 * 86400)

    page = await operator.get(f"{codes}/{code['xr_id']}")

    assert page.heading == "example.org/tonight"
    assert page.find(".//p[@class='lead']/bdi").text == "Tonight"
    first = page.find(".//main//a")
    assert (first.text, first.get("href")) == (
        "Download the sound (WAV)",
        f"{codes}/{code['xr_id']}/sound.wav?protocol=4",
    )
    assert page.tiles["Status"] == "active"
    assert page.tiles["Expires"] == "in 6 days"
    assert page.tiles["Campaign"] == "The breakfast show"
    assert page.find(".//dl[@class='tiles']//a").get("href", "").endswith(f"/campaigns/{campaign['id']}")
    assert page.find(".//details[@id='verification']").get("open") is None
    *_, revoke, _ = page.find_all(".//main//a")
    assert revoke.get("href") == f"{codes}/{code['xr_id']}/revoke"
    assert set(map(str, (code[name] for name in ("xr_id", "broadcast_token", "campaign_id")))) <= {
        each.get("data-copy-value") for each in page.find_all(".//aside//code")
    }


async def test_a_code_of_an_old_campaign_has_its_name(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    """However many campaigns are newer than those that a list begins with."""
    campaign = await tenant.make_campaign("Tonight")
    code = await tenant.make_code(campaign_id=campaign["id"])
    operator.core.alter("GET /v1/campaigns", lambda document: {**document, "data": []})

    page = await operator.get(f"{codes}/{code['xr_id']}")

    assert page.tiles["Campaign"] == "Tonight"


async def test_the_calls_for_a_code_run_beside_one_another(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    """The key history is held back until the others have been made."""
    code = await tenant.make_code()
    held = operator.core.hold("GET /v1/keys/history", b"{")
    operator.core.calls.clear()

    loading = asyncio.create_task(operator.get(f"{codes}/{code['xr_id']}"))
    await held.begun.get()
    paths = {call.url.path for call in operator.core.calls}
    held.may_end.set()
    page = await loading

    assert f"/v1/codes/{code['xr_id']}" in paths
    assert page.find(".//span[@id='server-verdict']").get("data-verdict") == "unknown", "no keys came of it"


async def test_the_console_verifies_a_signed_code(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()

    page = await operator.get(f"{codes}/{code['xr_id']}")

    verdict = page.find(".//span[@id='server-verdict']")
    assert verdict.get("data-verdict") == "verified"
    assert verdict.text == "The console verified the signature and the token of this Code."


async def test_a_code_that_another_key_signed_is_said_to_be_wrong(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    code = await tenant.make_code()
    history = (await tenant.api.get("/v1/keys/history")).json
    history["keys"] = [{**key, "x": "A" * 43} for key in history["keys"]]
    operator.core.answer("GET /v1/keys/history", 200, history)

    page = await operator.get(f"{codes}/{code['xr_id']}")

    verdict = page.find(".//span[@id='server-verdict']")
    assert verdict.get("data-verdict") == "refused"
    assert "Do not broadcast it" in str(verdict.text)


async def test_without_keys_nothing_is_said_to_be_verified(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()
    operator.core.lose("GET /v1/keys/history")

    page = await operator.get(f"{codes}/{code['xr_id']}")

    assert page.status == 200
    assert page.find(".//span[@id='server-verdict']").get("data-verdict") == "unknown"


async def test_hostile_members_are_text(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    intent = {"type": HOSTILE, "action": HOSTILE, "resource": {HOSTILE: [HOSTILE, "\u202eabc\u0000\U000e0041"]}}
    code = await tenant.make_code(issuer=HOSTILE, intent=intent)

    page = await operator.get(f"{codes}/{code['xr_id']}")

    assert HOSTILE in page.text
    assert not page.find_all(".//body//script")
    assert not page.find_all(".//img")
    assert "\u202e" not in page.html
    assert "\\u202eabc\\u0000\\udb40\\udc41" in page.html, "what cannot be seen is spelled out"
    assert json.loads(str(page.find(".//pre[@id='signed-code']").text)) == code["signed_code"]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.org/ä?b=c#d", "example.org"),
        ("https://EXAMPLE.org:8443/", "example.org:8443"),
        ("https://аpple.com/", "xn--pple-43d.com"),
        ("https://[2001:db8::1]/", "[2001:db8::1]"),
    ],
)
async def test_a_web_link_shows_the_host_that_it_leads_to(
    operator: ConsoleClient, tenant: Tenant, codes: str, url: str, host: str
) -> None:
    intent = {"type": "link", "action": "open", "resource": {"url": url}}
    code = await tenant.make_code(intent=intent)

    page = await operator.get(f"{codes}/{code['xr_id']}")

    link = page.find(".//p[@id='intent-link']/a")
    assert (link.get("href"), link.text) == (url, f"Open the page at {host}")
    assert "noopener" in str(link.get("rel"))


@pytest.mark.parametrize(
    "intent",
    [
        {"type": "link", "action": "open", "resource": {"url": "javascript:alert(1)"}},
        {"type": "link", "action": "open", "resource": {"url": "http://example.org/"}},
        {"type": "link", "action": "open", "resource": {"url": "HTTPS:example.org"}},
        {"type": "link", "action": "open", "resource": {"url": "https://good.example@evil.example/"}},
        {"type": "link", "action": "open", "resource": {"url": "https://good.example\\@evil.example/"}},
        {"type": "link", "action": "open", "resource": {"url": "https://evil.example\n.good.example/"}},
        {"type": "link", "action": "open", "resource": {"url": "https://a..b/"}},
        {"type": "link", "action": "open", "resource": {"url": "https://example.org:99999/"}},
        {"type": "link", "action": "open", "resource": {"url": ["https://example.org/"]}},
        {"type": "note", "action": "open", "resource": {"url": "https://example.org/"}},
    ],
)
async def test_any_other_intent_is_text_alone(
    operator: ConsoleClient, tenant: Tenant, codes: str, intent: dict[str, Any]
) -> None:
    code = await tenant.make_code(intent=intent)

    page = await operator.get(f"{codes}/{code['xr_id']}")

    assert page.tree.find(".//p[@id='intent-link']") is None
    assert not [each for each in page.find_all(".//main//a") if "example" in str(each.get("href"))]


async def test_the_sound_is_a_file_for_each_protocol(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()
    path = f"{codes}/{code['xr_id']}"

    for protocol, size in (("", 225_324), ("3", 305_196), ("5", 145_452), ("6", 225_324)):
        page = await operator.get(path, params={"protocol": protocol})
        answer = await operator.get(str(page.find(".//audio").get("src")))
        assert answer.headers["content-type"] == "audio/wav"
        assert answer.headers["content-disposition"] == f'attachment; filename="{code["xr_id"]}.wav"'
        assert len(answer.response.content) == size, protocol
        assert answer.response.content[:4] == b"RIFF"


@pytest.mark.parametrize("status", ["expired", "revoked"])
async def test_a_code_that_is_not_active_has_no_sound_and_says_why(
    operator: ConsoleClient, tenant: Tenant, codes: str, clock: FakeClock, status: str
) -> None:
    code = await tenant.make_code(lifetime_s=60)
    if status == "revoked":
        await tenant.revoke(code["xr_id"])
    else:
        clock.advance(seconds=61)

    page = await operator.get(f"{codes}/{code['xr_id']}")

    assert page.find(".//p[@id='no-sound']").text.startswith("This Code ")
    assert page.tree.find(".//audio") is None
    assert page.find(f".//span[@class='status status-{status}']").text == status
    assert page.find(".//span[@id='server-verdict']").get("data-verdict") == "verified", "it stays authentic"
    sound = await operator.get(f"{codes}/{code['xr_id']}/sound.wav")
    assert (sound.status, sound.trouble) == (409, "code_not_active")


async def test_a_sound_that_cannot_be_made_now_says_so(mute: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()
    path = f"{codes}/{code['xr_id']}"

    assert (await mute.get(path)).status == 200
    for address, query in ((f"{path}/sound.wav", {}), (f"{codes}/bundle", {"xr_ids": code["xr_id"]})):
        page = await mute.get(address, params=query)
        assert (page.status, page.trouble) == (503, "audio_unavailable")
        assert page.find(".//a[@class='button']").text == "Try again"


async def test_codes_are_issued_while_audience_cannot_be_reached(
    mute: ConsoleClient, tenant: Tenant, rival: Rival, codes: str, fields: Any
) -> None:
    await tenant.give_cell(rival)
    form = await mute.get(f"{codes}/issue")
    assert form.status == 200
    assert "Some choices cannot be shown at the moment." in form.text

    answer = await mute.submit(f"{codes}/issue", fields(integration_id="int_0000000000000000000000"))
    assert (answer.status, answer.trouble) == (503, "audience_unavailable")
    assert answer.value("integration_id") == "int_0000000000000000000000"
    assert (await mute.submit(f"{codes}/issue", fields())).status == 303


async def test_a_code_is_revoked_after_its_confirmation(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()
    path = f"{codes}/{code['xr_id']}"
    asked = await operator.get(f"{path}/revoke")
    assert code["issuer"] in asked.text
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 200

    page = await operator.follow(await operator.submit(f"{path}/revoke"))

    assert "The Code was revoked." in page.text
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 404
    assert not page.find_all(f".//a[@href='{path}/revoke']")


async def test_the_page_before_a_revocation_says_what_the_code_does(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    campaign = await tenant.make_campaign("Tonight")
    resource = {"url": "https://example.org/song", "title": "The song"}
    intent = {"type": "link", "action": "open", "resource": resource}
    code = await tenant.make_code(campaign_id=campaign["id"], intent=intent)
    path = f"{codes}/{code['xr_id']}/revoke"

    page = await operator.get(path)

    assert "".join(page.find(".//dd[@id='does']").itertext()) == "example.org/songThe song"
    assert "".join(page.find(".//dd[@id='campaign']").itertext()) == "Tonight"
    operator.core.lose(f"GET /v1/campaigns/{campaign['id']}/summary")
    assert "".join((await operator.get(path)).find(".//dd[@id='campaign']").itertext()).strip() == campaign["id"]


async def test_the_back_button_after_a_revocation_finds_nothing_to_revoke(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    code = await tenant.make_code()
    path = f"{codes}/{code['xr_id']}/revoke"
    await operator.submit(path)

    page = await operator.get(path)
    assert "there is nothing to revoke" in page.text
    assert not page.find_all(".//main//button")
    again = await operator.submit(path)
    assert again.location == f"{codes}/{code['xr_id']}"


async def test_revoking_what_expired_meanwhile_says_so(
    operator: ConsoleClient, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    code = await tenant.make_code(lifetime_s=60)
    clock.advance(seconds=61)

    page = await operator.follow(await operator.submit(f"{codes}/{code['xr_id']}/revoke"))

    assert "The Code had already expired. Nothing was changed." in page.text


async def test_a_code_of_another_project_or_tenant_is_not_found(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    for other in (await make_second_project(tenant), await make_tenant(tenant.api)):
        xr_id = (await other.make_code())["xr_id"]
        for path in ("", "/sound.wav", "/revoke"):
            assert (await operator.get(f"{codes}/{xr_id}{path}")).status == 404
        assert (await operator.submit(f"{codes}/{xr_id}/revoke")).status == 404
        answer = await other.api.get(f"/v1/codes/{xr_id}", params=other.query)
        assert answer.json["status"] == "active"


@pytest.mark.parametrize(
    "segment", ["xr_short", "..%2e", "%2e%2e", "xr_%00aaaaaaaaaaaaaaaaaaaa", "xr_ääääääääääääääääää"]
)
async def test_a_text_that_is_not_an_id_has_no_page(operator: ConsoleClient, codes: str, segment: str) -> None:
    assert (await operator.get(f"{codes}/{segment}")).status == 404


async def test_two_tabs_show_two_organizations(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    other = await make_tenant(tenant.api)
    there = codes.replace(tenant.organization_id, other.organization_id).replace(tenant.project_id, other.project_id)
    mine, theirs = await tenant.make_code(), await other.make_code()

    for path, shown, hidden in ((codes, mine, theirs), (there, theirs, mine), (codes, mine, theirs)):
        page = await operator.get(path)
        assert shown["xr_id"] in page.text
        assert hidden["xr_id"] not in page.text
    mixed = f"/organizations/{other.organization_id}/projects/{tenant.project_id}/codes"
    assert (await operator.get(mixed)).status == 404
