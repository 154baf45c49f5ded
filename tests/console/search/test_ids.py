"""Ids that are pasted whole into the search: the page of each kind, or the nearest one with a sentence about it."""

import pytest
from support.api.core_settings import BASE_URL
from support.console.client import ConsoleClient
from support.console.search_pages import found_in, search_path
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console import directory, lookups


async def test_an_id_leads_to_the_page_that_shows_what_it_names(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    campaign = await tenant.make_campaign("Summer")
    code, key = await tenant.make_code(), await tenant.make_key(name="Playout")
    integration, endpoint = await tenant.make_integration(), await tenant.make_webhook_endpoint()
    invitation, certificate = await tenant.make_invitation(), await tenant.certify(code["xr_id"])
    await tenant.make_entitlement(rival)
    [(subscription_id,)] = await rival.rows("SELECT id FROM subscriptions WHERE provider = 'contract'")
    organization = f"/organizations/{tenant.organization_id}"
    project = f"{organization}/projects/{tenant.project_id}"
    pages = {
        tenant.organization_id: organization,
        tenant.project_id: project,
        code["xr_id"]: f"{project}/codes/{code['xr_id']}",
        certificate["certificate_id"]: f"{project}/codes/{code['xr_id']}",
        campaign["id"]: f"{project}/campaigns/{campaign['id']}",
        key["id"]: f"{project}/api-keys#{key['id']}",
        integration["id"]: f"{project}/integrations/{integration['id']}",
        endpoint["id"]: f"{organization}/webhooks/{endpoint['id']}",
        invitation["id"]: f"{organization}/members/invitations",
        subscription_id: f"{organization}/billing",
    }
    for wanted, path in pages.items():
        page = await operator.get(search_path(tenant, wanted))
        assert [*found_in(page).values()] == [path], wanted
        assert page.find_all(".//p[@id='in-part']") == [], wanted
        assert (await operator.get(path.partition("#")[0])).status == 200


async def test_a_kind_without_a_page_leads_to_the_nearest_one_and_says_why(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    organization = f"/organizations/{tenant.organization_id}"
    nearest = {
        "abr": "/platform/abuse-reports",
        "aud": f"{organization}/audit-log",
        "offer": f"{organization}/billing/offers",
        "opk": f"{organization}/audit-log?action=offline_pack.created",
        "plan": f"{organization}/billing/offers",
        "prf": f"{organization}/projects",
        "sig": f"{BASE_URL}/v1/keys/history",
        "supreq": f"{organization}/tickets",
        "whd": f"{organization}/webhooks",
    }
    for prefix, path in nearest.items():
        page = await operator.get(search_path(tenant, f"{prefix}_{'0' * 22}"))
        assert [*found_in(page).values()] == [path], prefix
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
    """An older key than the newest of a long list, another project, and an organisation beyond the first few."""
    old = await tenant.make_key(name="Old")
    await tenant.make_key()
    integration = await tenant.make_integration()
    unknown = f"/search?q=key_{'0' * 22}"
    elsewhere = f"/search?organization_id={tenant.organization_id}&q={integration['id']}"
    assert (await operator.get(unknown)).find_all(".//p[@id='in-part']") == []
    assert found_in(await operator.get(search_path(tenant, old["id"])))
    with monkeypatch.context() as short:
        short.setattr(lookups, "LISTED_MAX", 0)
        for path in (search_path(tenant, old["id"]), elsewhere):
            page = await operator.get(path)
            assert found_in(page) == {}, path
            assert page.find(".//p[@id='in-part']").text, path
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
        await operator.get(search_path(tenant, f"inv_{'0' * chars}"))
        looks.append([each.url.path for each in operator.core.calls].count("/v1/member-invitations"))
    assert looks == [0, 1]


async def test_an_id_is_found_from_a_page_of_no_organization(operator: ConsoleClient, tenant: Tenant) -> None:
    code = await tenant.make_code()

    assert [*found_in(await operator.get(f"/search?q={code['xr_id']}"))] == [code["xr_id"]]


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
