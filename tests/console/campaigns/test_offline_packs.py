"""What the console says about offline packs before and after something is stopped: which are valid, and until when."""

import pytest
from support.console.campaign_pages import path_of
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.console import offline_packs

NONE = "No offline packs are in use, so this takes effect on every receiver at once."
UNKNOWN = "The offline packs could not be looked up."


def packs_on(page: PageAnswer) -> list[str]:
    return ["".join(each.itertext()) for each in page.find_all(".//*[@id='offline-packs']//tbody/tr/th/code")]


def sentence_on(page: PageAnswer) -> str:
    [shown] = page.find_all(".//*[@id='offline-packs']")
    summary = shown.find("summary")
    return " ".join("".join((shown if summary is None else summary).itertext()).split())


async def test_a_stop_says_before_and_after_which_packs_are_valid_and_until_when(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    campaign, other = await tenant.make_campaign(), await tenant.make_campaign(name="Tomorrow")
    path = path_of(tenant, campaign["id"])
    await tenant.make_code(campaign_id=campaign["id"])
    assert sentence_on(await operator.get(f"{path}/stop")).startswith(NONE)
    assert not (await operator.get(path)).find_all(".//*[@id='offline-packs']")
    ended = await tenant.make_pack(campaign["id"], valid_for_s=300)
    clock.advance(minutes=10)
    long, short = await tenant.make_pack(valid_for_s=7200), await tenant.make_pack(campaign["id"], valid_for_s=3600)
    await tenant.make_pack(other["id"])

    asked = await operator.get(f"{path}/stop")
    stopped = await operator.follow(await operator.submit(f"{path}/stop"))

    until = asked.find(".//*[@id='offline-packs']/summary/time").text
    assert ended["pack_id"] not in asked.text
    assert sentence_on(asked).startswith("2 offline packs may name Codes of this campaign.")
    assert packs_on(asked) == [long["pack_id"], short["pack_id"]]
    assert "the whole project" in asked.text
    notice = f"1 Code was revoked. Receivers without a network can answer from offline packs until {until} UTC."
    assert notice in stopped.text
    assert packs_on(stopped) == [long["pack_id"], short["pack_id"]]
    assert sentence_on(stopped) == f"Receivers without a network can answer from 2 offline packs until {until}"
    clock.advance(hours=2)
    assert not (await operator.get(path)).find_all(".//*[@id='offline-packs']")


async def test_revoking_a_code_names_the_packs_that_may_have_it(
    operator: ConsoleClient, tenant: Tenant, codes: str, clock: FakeClock
) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_pack()
    clock.advance(seconds=1)
    code = await tenant.make_code()
    path = f"{codes}/{code['xr_id']}"
    await tenant.make_pack(campaign["id"])
    assert sentence_on(await operator.get(f"{path}/revoke")).startswith(NONE), "none since it was issued may have it"
    pack = await tenant.make_pack()

    asked = await operator.get(f"{path}/revoke")
    revoked = await operator.follow(await operator.submit(f"{path}/revoke"))

    assert sentence_on(asked).startswith("1 offline pack may name what you revoke.")
    assert packs_on(asked) == packs_on(revoked) == [pack["pack_id"]]
    assert sentence_on(revoked).startswith("Receivers without a network can answer from 1 offline pack until")
    operator.core.calls.clear()
    clock.advance(days=1)
    operator.sign_in_as_operator(clock.now())
    assert not (await operator.get(path)).find_all(".//*[@id='offline-packs']")
    assert not [call for call in operator.core.calls if call.url.path == "/v1/audit-log"]


async def test_revoking_a_selection_says_until_when_packs_are_valid(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    chosen = {"xr_ids": [(await tenant.make_code())["xr_id"] for _ in range(2)]}
    pack = await tenant.make_pack()

    asked = await operator.get(f"{codes}/revoke", params=chosen)
    revoked = await operator.follow(await operator.submit(f"{codes}/revoke", chosen))

    assert packs_on(asked) == [pack["pack_id"]]
    until = asked.find(".//*[@id='offline-packs']/summary/time").text
    assert (
        f"2 Codes were revoked. Receivers without a network can answer from offline packs until {until} UTC."
        in revoked.text
    )


async def test_a_measured_code_is_in_no_pack(operator: ConsoleClient, tenant: Tenant, codes: str) -> None:
    code = await tenant.make_code()
    await tenant.make_pack()
    measured = {"audience_enabled": True, "audience_integration_id": "int_" + "z" * 22}
    operator.core.alter(f"GET /v1/codes/{code['xr_id']}", lambda answer: {**answer, **measured})

    assert sentence_on(await operator.get(f"{codes}/{code['xr_id']}/revoke")).startswith(NONE)


async def test_packs_that_cannot_be_looked_up_are_said_to_be_unknown(
    operator: ConsoleClient, tenant: Tenant, codes: str
) -> None:
    """The stop itself must not wait for it, and its answer still says until when."""
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    await tenant.make_pack()
    path = path_of(tenant, campaign["id"])
    operator.core.lose("GET /v1/audit-log")

    for page in (f"{path}/stop", path, f"{codes}/{code['xr_id']}/revoke"):
        assert sentence_on(await operator.get(page)).startswith(UNKNOWN)
    stopped = await operator.follow(await operator.submit(f"{path}/stop"))
    assert "Receivers without a network can answer from offline packs until" in stopped.text


async def test_more_packs_than_are_read_are_said_to_be_more(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline_packs, "_READ_MAX", 2)
    campaign = await tenant.make_campaign()
    path = f"{path_of(tenant, campaign['id'])}/stop"
    await tenant.make_pack()
    assert "There are more" not in (await operator.get(path)).text
    await tenant.make_pack()

    page = await operator.get(path)

    assert len(packs_on(page)) == 2
    assert "There are more offline packs than this page lists." in page.text


async def test_packs_of_other_projects_are_not_listed(operator: ConsoleClient, tenant: Tenant) -> None:
    await (await make_second_project(tenant)).make_pack()
    campaign = await tenant.make_campaign()

    assert sentence_on(await operator.get(f"{path_of(tenant, campaign['id'])}/stop")).startswith(NONE)


async def test_a_member_who_stops_nothing_is_told_nothing_of_packs(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    campaign = await tenant.make_campaign()
    await tenant.make_pack()
    await people.member(tenant, rival, "member", "member")
    visitors.sign_in_as(people, "member", clock.now())

    page = await visitors.get(path_of(tenant, campaign["id"]))

    assert not page.find_all(".//*[@id='offline-packs']")
    assert not [call for call in visitors.core.calls if call.url.path == "/v1/audit-log"]
