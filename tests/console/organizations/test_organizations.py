"""The pages of organisations."""

import pytest
from support.api.core_client import Api
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

HOSTILE = '<script>alert(1)</script> & "Nordlicht" \'=1+1'


async def test_a_new_person_is_told_what_to_do_first(operator: ConsoleClient) -> None:
    page = await operator.get("/organizations")

    assert page.status == 200
    assert "You do not belong to an organisation yet." in page.text


async def test_the_first_page_is_the_home_of_an_only_organization_and_the_list_otherwise(
    operator: ConsoleClient, api: Api
) -> None:
    assert (await operator.get("/")).location == "/organizations"

    organization_id = await api.make_organization()
    operator.core.calls.clear()
    assert (await operator.get("/")).location == f"/organizations/{organization_id}"
    assert len(operator.core.calls) == 1
    operator.core.refuse("GET /v1/organizations", 503, "database_unavailable")
    assert (await operator.get("/")).location == "/organizations"
    operator.core.recover()

    await api.make_organization()
    assert (await operator.get("/")).location == "/organizations"


async def test_an_organization_is_created_and_its_projects_are_shown(operator: ConsoleClient, api: Api) -> None:
    answer = await operator.submit("/organizations", {"name": "Radio Nordlicht"})

    [organization] = (await api.get("/v1/organizations")).json["data"]
    assert answer.location == f"/organizations/{organization['id']}/projects"
    page = await operator.follow(answer)
    assert "Radio Nordlicht was created." in page.text
    assert "Radio Nordlicht was created." not in (await operator.follow(answer)).text


async def test_a_refused_name_is_shown_again_with_the_reason_beside_it(operator: ConsoleClient) -> None:
    page = await operator.submit("/organizations", {"name": "n" * 121})

    assert page.status == 422
    assert page.trouble == "validation_failed"
    assert page.value("name") == "n" * 121
    assert page.find(".//input[@id='field-name']").get("aria-invalid") == "true"
    assert page.find(".//p[@id='refused-name']").text


async def test_a_hostile_name_is_shown_as_text(operator: ConsoleClient) -> None:
    page = await operator.follow(await operator.submit("/organizations", {"name": HOSTILE}))

    assert HOSTILE in page.text
    assert not page.find_all(".//body//script")


async def test_an_organization_is_renamed(operator: ConsoleClient) -> None:
    created = await operator.submit("/organizations", {"name": "Radio"})
    path = created.location.removesuffix("/projects")

    page = await operator.follow(await operator.submit(f"{path}/settings", {"name": "Radio Nordlicht"}))

    assert page.value("name") == (await operator.get(path)).heading == "Radio Nordlicht"
    assert "The organisation was renamed." in page.text


async def test_the_archive_is_downloaded_as_a_file(operator: ConsoleClient, api: Api) -> None:
    organization_id = await api.make_organization()

    answer = await operator.get(f"/organizations/{organization_id}/export")

    assert answer.headers["content-disposition"] == (
        f'attachment; filename="{organization_id}.svc-organization-archive-v1.json"'
    )
    assert answer.response.json()["organization"]["id"] == organization_id


async def test_a_wrong_confirmation_deletes_nothing(operator: ConsoleClient, api: Api) -> None:
    organization_id = await api.make_organization()

    page = await operator.submit(f"/organizations/{organization_id}/delete", {"confirmation": "org_other"})

    assert page.status == 422
    assert page.trouble == "confirmation_mismatch"
    assert page.value("confirmation") == "org_other"
    assert [each["id"] for each in (await api.get("/v1/organizations")).json["data"]] == [organization_id]


async def test_a_deletion_shows_what_it_deletes_and_then_its_certificate(operator: ConsoleClient, api: Api) -> None:
    organization_id = await api.make_organization()
    await api.make_project(organization_id)
    path = f"/organizations/{organization_id}/delete"
    asked = await operator.get(path)
    assert "Projects1" in asked.text.replace(" ", "")
    assert asked.find_all(".//main//p/a")[-1].get("href") == f"/organizations/{organization_id}/settings"
    certificate_id = asked.value("certificate_id")

    page = await operator.follow(
        await operator.submit(path, {"confirmation": organization_id, "certificate_id": certificate_id})
    )

    assert certificate_id in page.text
    assert (await api.get("/v1/organizations")).json["data"] == []
    assert (await operator.get(f"/organizations/{organization_id}")).status == 404


@pytest.mark.parametrize("certificate_id", [".", ".."])
async def test_a_deletion_without_a_possible_certificate_deletes_nothing(
    operator: ConsoleClient, tenant: Tenant, certificate_id: str
) -> None:
    """After a lost answer, the id is a part of the path of a call to Core."""
    organization = f"/organizations/{tenant.organization_id}"
    for path, confirmation in (
        (organization, tenant.organization_id),
        (f"{organization}/projects/{tenant.project_id}", tenant.project_id),
    ):
        fields = {"confirmation": confirmation, "certificate_id": certificate_id}
        page = await operator.submit(f"{path}/delete", fields)
        assert (page.status, page.trouble) == (400, "form_malformed")
        assert (await operator.get(path)).status == 200


async def test_another_organization_is_a_page_that_does_not_exist(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    visitors.sign_in_as(people, "stranger", clock.now())

    page = await visitors.get(f"/organizations/{tenant.organization_id}")

    assert page.status == 404
    assert page.trouble == "page_not_found"
    assert "Radio Nordlicht" not in page.text


async def test_a_role_is_offered_only_what_it_may_do(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await people.member(tenant, rival, "admin", "admin")
    await people.member(tenant, rival, "reader", "member")
    path = f"/organizations/{tenant.organization_id}"
    offered: dict[str, list[str]] = {}
    for subject in ("owner", "admin", "reader"):
        visitors.sign_in_as(people, subject, clock.now())
        paths = ("/settings", "/projects?new=1", f"/projects/{tenant.project_id}/settings")
        pages = [await visitors.get(path + rest) for rest in paths]
        offered[subject] = [str(each.text) for page in pages for each in page.find_all(".//main//h2")]

    in_projects = ["Create a project", "Rename", "Allowed hosts", "Export and delete"]
    assert offered == {
        "owner": ["Rename", "Export and delete", *in_projects],
        "admin": ["Rename", *in_projects],
        "reader": ["Allowed hosts"],
    }


async def test_the_list_marks_what_is_suspended_or_being_deleted(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await operator.submit(f"/platform/organizations/{tenant.organization_id}/suspension", {"reason": "Spam."})
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")

    page = await operator.get("/organizations")

    assert [each.text for each in page.find_all(".//tbody//span[@class]") if "status" in str(each.get("class"))] == [
        "suspended",
        "being deleted",
    ]
