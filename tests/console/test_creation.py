"""The form behind the primary action of a list: above the list, in a dialog or in the page."""

from typing import Any

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.console.page_paths import make_one_of_each
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

ORGANIZATION = "/organizations/{organization_id}"
PROJECT = f"{ORGANIZATION}/projects/{{project_id}}"
# The path of each list, a form that Core refuses, and a field of it.
LISTS = [
    ("/organizations", {"name": "n" * 121}, "name"),
    (f"{ORGANIZATION}/projects", {"name": "n" * 121}, "name"),
    (f"{ORGANIZATION}/members/invitations", {"email": "ada", "role": "member", "expires_in_days": "7"}, "email"),
    (f"{PROJECT}/api-keys", {"name": "Playout", "scopes": [], "expires_in_days": "90"}, "name"),
    (f"{PROJECT}/campaigns", {"name": "n" * 121}, "name"),
    (f"{PROJECT}/integrations", {"name": "n" * 121, "mode": "demo", "retention_days": ""}, "name"),
]


def read_order(page: PageAnswer, *tags: str) -> list[str]:
    """Return what stands in the page, in its order, of some tags; a form counts if people type into it."""
    fields = {form: form.find(".//div[@class='field']") for form in page.find_all(".//main//form")}
    refused = {form: form.find(".//div[@class='field refused']") for form in fields}
    return [
        each.tag
        for each in page.find(".//main").iter()
        if each.tag in tags and (each.tag != "form" or fields[each] is not None or refused[each] is not None)
    ]


@pytest.mark.parametrize(("path", "fields", "typed"), LISTS, ids=[each[0] for each in LISTS])
async def test_the_form_stands_above_the_list(
    operator: ConsoleClient, tenant: Tenant, path: str, fields: dict[str, Any], typed: str
) -> None:
    path = path.format_map(await make_one_of_each(operator, tenant))

    page = await operator.get(path)
    [link] = page.find_all(".//div[@class='acts']/a[@data-dialog='new']")
    assert read_order(page, "form", "dialog", "table") == ["dialog", "form", "table"]
    assert page.find(".//dialog").get("id") == "new"

    alone = await operator.get(str(link.get("href")))
    refused = await operator.submit(path, fields)
    for each in (alone, refused):
        assert read_order(each, "form", "dialog", "table") == ["form", "table"]
        assert each.find_all(".//a[@data-dialog]") == []
    assert (refused.status, refused.value(typed)) == (422, fields[typed])
    again = await operator.submit(str(link.get("href")), fields)
    assert (again.status, again.value(typed)) == (422, fields[typed])


@pytest.mark.parametrize("path", [each[0] for each in LISTS[2:]])
async def test_an_empty_list_shows_its_form(operator: ConsoleClient, tenant: Tenant, path: str) -> None:
    ids = {"organization_id": tenant.organization_id, "project_id": tenant.project_id}

    page = await operator.get(path.format_map(ids))

    assert read_order(page, "form", "dialog", "table") == ["form"]
    assert page.find_all(".//a[@data-dialog]") == []


@pytest.mark.parametrize("area", ["campaigns", "integrations"])
async def test_a_form_is_offered_to_those_who_may_send_it(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock, area: str
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "reader", "member")
    visitors.sign_in_as(people, "reader", clock.now())
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/{area}"

    for query in ("", "?new=1"):
        page = await visitors.get(path + query)
        assert page.find_all(".//main//form") + page.find_all(".//a[@data-dialog]") == [], query


async def test_the_members_page_invites(operator: ConsoleClient, tenant: Tenant) -> None:
    path = f"/organizations/{tenant.organization_id}/members"

    page = await operator.get(path)

    assert page.find(".//div[@class='acts']/a[@data-dialog='new']").get("href") == f"{path}/invitations?new=1"
    assert page.find(".//dialog//form").get("action") == f"{path}/invitations"
