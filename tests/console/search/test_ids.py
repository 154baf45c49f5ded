"""Ids that are pasted whole into the search: the page of each kind, or the nearest one with a sentence about it."""

import re
from pathlib import Path

import pytest
from support.api.core_settings import BASE_URL
from support.billing.offers import LOCAL_OFFER, make_local_offer
from support.console.client import ConsoleClient
from support.console.page_paths import make_one_of_each
from support.console.search_pages import found_in, search_path
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

import soundmark
from soundmark.console import directory, lookups
from soundmark.console.pages.search import ids

# By the prefix of an id that has no page of its own, the nearest page within the organisation, or of another site.
NEAREST = {
    "abr": "/platform/abuse-reports",
    "aud": "{organization}/audit-log",
    "offer": "{organization}/billing/offers",
    "opk": "{organization}/audit-log?action=offline_pack.created",
    "plan": "{organization}/billing/offers",
    "prf": "{organization}/projects",
    "sig": f"{BASE_URL}/v1/keys/history",
    "supreq": "{organization}/tickets",
    "whd": "{organization}/webhooks",
}
# Those that have one: see the first test.
OWN = {"org", "prj", "xr", "dcc", "cmp", "key", "int", "whe", "inv", "bsu", "bco", "evn", "tkt"}


async def test_an_id_leads_to_the_page_that_shows_what_it_names(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    made = await make_one_of_each(operator, tenant)
    certificate = await tenant.certify(made["xr_id"])
    await tenant.make_entitlement(rival)
    [(subscription_id,)] = await rival.rows("SELECT id FROM subscriptions WHERE provider = 'contract'")
    organization = f"/organizations/{tenant.organization_id}"
    project = f"{organization}/projects/{tenant.project_id}"
    pages = {
        tenant.organization_id: organization,
        tenant.project_id: project,
        made["xr_id"]: f"{project}/codes/{made['xr_id']}",
        certificate["certificate_id"]: f"{project}/codes/{made['xr_id']}",
        made["campaign_id"]: f"{project}/campaigns/{made['campaign_id']}",
        made["api_key_id"]: f"{project}/api-keys#{made['api_key_id']}",
        made["integration_id"]: f"{project}/integrations/{made['integration_id']}",
        made["endpoint_id"]: f"{organization}/webhooks/{made['endpoint_id']}",
        made["invitation_id"]: f"{organization}/members/invitations#{made['invitation_id']}",
        made["checkout_id"]: f"/billing/checkouts/{made['checkout_id']}",
        made["event_id"]: f"{organization}/webhooks/events/{made['event_id']}",
        made["ticket_id"]: f"{organization}/tickets/{made['ticket_id']}",
        subscription_id: f"{organization}/billing",
    }
    assert {each.partition("_")[0] for each in pages} == OWN
    for wanted, path in pages.items():
        page = await operator.get(search_path(tenant, wanted))
        assert [*found_in(page).values()] == [path], wanted
        assert page.find_all(".//p[@id='in-part']") == [], wanted
        assert (await operator.get(path.partition("#")[0])).status == 200


async def test_a_kind_without_a_page_leads_to_the_nearest_one_and_says_why(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    organization = f"/organizations/{tenant.organization_id}"
    for prefix, path in NEAREST.items():
        page = await operator.get(search_path(tenant, f"{prefix}_{'0' * 22}"))
        assert [*found_in(page).values()] == [path.format(organization=organization)], prefix
        assert page.find(".//ul[@class='found']//span[@class='hint']").text, prefix


async def test_the_nearest_page_is_offered_to_those_who_may_read_it(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("alice")
    await people.member(tenant, rival, "bob", "member")
    visitors.sign_in_as(people, "bob", clock.now())

    for prefix in ("abr", "aud", "plan", "whd"):
        assert found_in(await visitors.get(search_path(tenant, f"{prefix}_{'0' * 22}"))) == {}, prefix


async def test_a_deletion_is_found_by_its_certificate(operator: ConsoleClient, tenant: Tenant) -> None:
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/delete"
    shown = await operator.get(path)
    sent = {"confirmation": tenant.project_id, "certificate_id": shown.value("certificate_id")}
    deleted = (await operator.submit(path, sent)).location

    assert [*found_in(await operator.get(f"/search?q={deleted.rpartition('/')[2]}")).values()] == [deleted]


async def test_a_search_that_did_not_look_everywhere_says_so(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older key than the newest of a long list, and an organisation beyond the first few."""
    old = await tenant.make_key(name="Old")
    await tenant.make_key()
    unknown = f"/search?q=key_{'0' * 22}"
    assert (await operator.get(unknown)).find_all(".//p[@id='in-part']") == []
    assert found_in(await operator.get(search_path(tenant, old["id"])))
    with monkeypatch.context() as short:
        short.setattr(lookups, "LISTED_MAX", 0)
        page = await operator.get(search_path(tenant, old["id"]))
        assert found_in(page) == {}
        assert page.find(".//p[@id='in-part']").text
    for _ in range(8):
        await tenant.api.make_organization()
    assert (await operator.get(unknown)).find(".//p[@id='in-part']").text


async def test_a_page_of_an_organization_beyond_the_bound_says_that_it_is_out_of_reach(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "_PAGES_MAX", 1)
    operator.core.alter("GET /v1/organizations", lambda _: {"data": [], "next_cursor": "more"})

    page = await operator.get(f"/organizations/{tenant.organization_id}")

    assert (page.status, page.trouble) == (404, "too_many_listed")
    assert [each.url.path for each in operator.core.calls].count("/v1/organizations") == 1


async def test_an_id_is_looked_for_once_it_is_whole(operator: ConsoleClient, tenant: Tenant) -> None:
    """The palette searches at every pause of somebody who types, in up to eight organisations."""
    looks = []
    for chars in (21, 22):
        await operator.get(search_path(tenant, f"bsu_{'0' * chars}"))
        looks.append([each.url.path for each in operator.core.calls].count("/v1/billing/subscriptions"))
    assert looks == [0, 1]


async def test_an_id_is_found_from_a_page_of_no_organization(operator: ConsoleClient, tenant: Tenant) -> None:
    code = await tenant.make_code()

    assert [*found_in(await operator.get(f"/search?q={code['xr_id']}"))] == [code["xr_id"]]


async def test_an_integration_is_found_from_every_page(operator: ConsoleClient, tenant: Tenant) -> None:
    """Core lists integrations by project alone."""
    other = await make_second_project(tenant)
    integration = await other.make_integration()
    path = f"/organizations/{tenant.organization_id}/projects/{other.project_id}/integrations/{integration['id']}"
    at_hand = f"organization_id={tenant.organization_id}&"
    for within in ("", at_hand, f"{at_hand}project_id={tenant.project_id}&"):
        page = await operator.get(f"/search?{within}q={integration['id']}")
        assert ([*found_in(page).values()], page.find_all(".//p[@id='in-part']")) == ([path], []), within


async def test_an_integration_beyond_the_projects_that_are_searched_may_be_there_all_the_same(
    operator: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_second_project(tenant)
    wanted = search_path(tenant, f"int_{'0' * 22}")
    assert (await operator.get(wanted)).find_all(".//p[@id='in-part']") == []
    monkeypatch.setattr(ids, "_PROJECTS_MAX", 1)

    assert (await operator.get(wanted)).find(".//p[@id='in-part']").text


async def test_a_plan_and_an_offer_lead_administrators_to_their_page_in_the_catalogue(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await make_local_offer(rival)
    for kind, identity in (("offer", LOCAL_OFFER), ("plan", "plan_codes_starter")):
        path = f"/platform/catalog/{kind}?{kind}_id={identity}"
        assert next(iter(found_in(await operator.get(search_path(tenant, identity))).values())) == path
        assert identity in (await operator.get(path)).text


def test_every_kind_of_id_is_looked_for() -> None:
    """As Core and Audience name the prefixes where they mint ids and check secrets."""
    folders = (Path(soundmark.__file__).parent / name for name in ("core", "audience"))
    text = "".join(each.read_text(encoding="utf-8") for folder in folders for each in folder.rglob("*.py"))
    prefixes = set(re.findall(r"""(?:mint\(\S+, "|_PREFIX: Final = "|(?<= )')([a-z]+)_(?:"|' \|\|)""", text))
    secrets = {"brd", "xak", "xhm", "xin", "whsec"}
    internal = {"acc", "act", "rpl"}  # Invoices in the making, acts to send events for, and replies on their way.

    assert len(prefixes) > 20, "the pattern finds them"
    assert prefixes - secrets - internal == (OWN | NEAREST.keys() | {"dct"}) - {"offer", "plan", "supreq", "int"}


@pytest.mark.parametrize("wanted", ["xr_unknown", "xr_", "cmp_../x", "org_of-others", "key_%00", "zzz_1", "_"])
async def test_an_id_of_nothing_finds_nothing(operator: ConsoleClient, tenant: Tenant, wanted: str) -> None:
    assert found_in(await operator.get(search_path(tenant, wanted))) == {}


async def test_nobody_finds_what_belongs_to_others(visitors: ConsoleClient, people: People, clock: FakeClock) -> None:
    tenant = await people.tenant_of("alice")
    await people.tenant_of("bob")
    code, campaign = await tenant.make_code(), await tenant.make_campaign("Summer")
    visitors.sign_in_as(people, "bob", clock.now())

    for text in (code["xr_id"], campaign["id"], tenant.organization_id, tenant.project_id, "Summer"):
        assert found_in(await visitors.get(search_path(tenant, text))) == {}, text
