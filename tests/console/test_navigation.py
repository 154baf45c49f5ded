"""What the navigation offers to each role, and the forms that a role may not send."""

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console.navigation import ORGANIZATION_AREAS, PROJECT_AREAS

MANAGING = {"members", "audit-log", "webhooks", "api-keys"}
HIDDEN = {
    "owner": set(),
    "admin": set(),
    "member": MANAGING | {"billing"},
    "billing": MANAGING | {"codes", "integrations"},
}


def areas_of(page: PageAnswer, kind: str) -> list[str]:
    """Return the areas of the organisation or project, after the link to its overview."""
    links = page.find_all(f".//nav[@aria-label='Areas']//ul[@aria-labelledby='areas-{kind}']//a")
    return [str(each.get("href")).rpartition("/")[2] for each in links[1:]]


@pytest.mark.parametrize("role", list(HIDDEN))
async def test_the_navigation_offers_what_the_role_may_read_and_nothing_else(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock, role: str
) -> None:
    tenant = await people.tenant_of("alice")
    if role != "owner":
        await people.member(tenant, rival, "bob", role)
    visitors.sign_in_as(people, "alice" if role == "owner" else "bob", clock.now())
    at = f"/organizations/{tenant.organization_id}"

    project = f"{at}/projects/{tenant.project_id}"
    for kind, path, areas in (("organization", at, ORGANIZATION_AREAS), ("project", project, PROJECT_AREAS)):
        offered = areas_of(await visitors.get(project), kind)

        assert offered == [area for area in areas if area not in HIDDEN[role]]
        for area in areas:
            answer = await visitors.get(f"{path}/{area}")
            # Everybody may read the offers, which only those who pay need.
            is_readable = answer.trouble != "forbidden" or area == "members"
            assert is_readable or area not in offered, area


async def test_a_person_without_a_right_to_the_list_of_members_may_leave_all_the_same(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("alice")
    await people.member(tenant, rival, "bob", "member")
    visitors.sign_in_as(people, "bob", clock.now())

    page = await visitors.get(f"/organizations/{tenant.organization_id}/settings")

    [leave] = [each for each in page.find_all(".//main//a") if "/members/remove" in str(each.get("href"))]
    assert (await visitors.get(str(leave.get("href")))).find(".//button[@class='danger final']") is not None


async def test_only_administrators_of_the_platform_are_offered_its_pages(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    roles = {"roles": ["svc_platform_admin"]}
    for claims, is_offered in (({}, False), ({"realm_access": roles}, True), ({"realm_access": "all"}, False)):
        visitors.sign_in_as(people, "alice", clock.now(), **claims)
        page = await visitors.get("/organizations")
        assert bool(page.find_all(".//header//a[@href='/platform']")) is is_offered, claims


async def test_the_operator_is_offered_the_pages_of_the_platform(operator: ConsoleClient) -> None:
    assert (await operator.get("/organizations")).find(".//header//a[@href='/platform']") is not None


async def test_a_form_that_the_role_may_not_send_is_not_shown(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant: Tenant = await people.tenant_of("alice")
    code, campaign = await tenant.make_code(), await tenant.make_campaign()
    await people.member(tenant, rival, "bob", "member")
    visitors.sign_in_as(people, "bob", clock.now())
    at = f"/organizations/{tenant.organization_id}"
    project = f"{at}/projects/{tenant.project_id}"

    for path in (
        f"{at}/webhooks/new",
        f"{project}/codes/issue",
        f"{project}/codes/{code['xr_id']}/revoke",
        f"{project}/codes/revoke?xr_ids={code['xr_id']}",
        f"{project}/campaigns/{campaign['id']}/archive",
        f"{project}/campaigns/{campaign['id']}/stop",
    ):
        page = await visitors.get(path)
        assert (page.status, page.trouble) == (403, "forbidden"), path
        assert page.find_all(".//main//form") == [], path
