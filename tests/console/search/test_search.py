"""The search: pages and names by a part of them, Codes by address, and ids that are pasted whole."""

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project

HOSTILE = "<b>Radio</b> \"'& {name}"


def search_path(tenant: Tenant, text: str) -> str:
    return f"/search?organization_id={tenant.organization_id}&project_id={tenant.project_id}&q={text}"


def found_in(page: PageAnswer) -> dict[str, str]:
    """Return the paths that were found, by their names."""
    links = page.find_all(".//ul[@class='found']//a")
    assert page.status == 200, page.text
    return {"".join(each[-1].itertext()): str(each.get("href")) for each in links}


async def test_an_id_that_is_pasted_whole_leads_to_its_page(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign("Summer")
    code, key = await tenant.make_code(), await tenant.make_key(name="Playout")
    integration, endpoint = await tenant.make_integration(), await tenant.make_webhook_endpoint()
    organization = f"/organizations/{tenant.organization_id}"
    project = f"{organization}/projects/{tenant.project_id}"
    pages = {
        tenant.organization_id: organization,
        tenant.project_id: project,
        code["xr_id"]: f"{project}/codes/{code['xr_id']}",
        campaign["id"]: f"{project}/campaigns/{campaign['id']}",
        key["id"]: f"{project}/api-keys#{key['id']}",
        integration["id"]: f"{project}/integrations/{integration['id']}",
        endpoint["id"]: f"{organization}/webhooks/{endpoint['id']}",
    }
    for wanted, path in pages.items():
        assert [*found_in(await operator.get(search_path(tenant, wanted))).values()] == [path], wanted
        assert (await operator.get(path.partition("#")[0])).status == 200


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


async def test_names_are_found_by_a_part_of_them(operator: ConsoleClient, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign("Summer festival")
    await tenant.make_key(name="Festival playout")
    await tenant.make_key()
    other = await make_second_project(tenant)

    found = found_in(await operator.get(search_path(tenant, "FESTIVAL")))

    assert [*found] == ["Summer festival", "Festival playout"]
    assert found["Summer festival"].endswith(f"/campaigns/{campaign['id']}")
    assert found_in(await operator.get(search_path(other, "festival"))) == {}, "it looks into the project at hand"


async def test_a_code_is_found_by_the_beginning_of_its_address(operator: ConsoleClient, tenant: Tenant) -> None:
    code = await tenant.make_code(
        intent={"type": "link", "action": "open", "resource": {"url": "https://example.org/tonight"}}
    )

    for text in ("example.org/to", "https://example.org/tonight"):
        found = found_in(await operator.get(search_path(tenant, text)))
        assert found["https://example.org/tonight"].endswith(code["xr_id"]), text


async def test_pages_are_found_by_their_names_as_far_as_the_role_goes(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("alice")
    await people.member(tenant, rival, "bob", "member")
    await tenant.make_key(name="Audience app")
    for person, names in (("alice", {"Audience", "Audience app"}), ("bob", {"Audience"})):
        visitors.sign_in_as(people, person, clock.now())
        assert {*found_in(await visitors.get(search_path(tenant, "audience")))} == names, person


async def test_findings_are_limited_and_are_text(operator: ConsoleClient, tenant: Tenant) -> None:
    for number in range(10):
        await tenant.make_campaign(f"{HOSTILE} {number}")

    page = await operator.get(search_path(tenant, "radio"))

    assert len([name for name in found_in(page) if name.startswith(HOSTILE)]) == 8
    assert page.find_all(".//main//b") == []
    echoed = await operator.get(search_path(tenant, "%22%3E%3Cscript%3E"))
    assert echoed.value("q") == '"><script>'


async def test_a_search_without_core_says_so(operator: ConsoleClient, tenant: Tenant) -> None:
    operator.core.go_down()

    page = await operator.get(search_path(tenant, "x"))

    assert (page.status, page.trouble) == (503, "core_unreachable")
