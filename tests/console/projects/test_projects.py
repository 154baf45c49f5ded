"""The pages of projects."""

import pytest
from support.console.client import ConsoleClient
from support.tenancy.tenant import Tenant


async def test_a_project_is_created_renamed_and_listed(operator: ConsoleClient, tenant: Tenant) -> None:
    path = f"/organizations/{tenant.organization_id}/projects"
    created = await operator.submit(path, {"name": "Evening show"})
    assert "Evening show was created." in (await operator.follow(created)).text

    renamed = await operator.follow(await operator.submit(f"{created.location}/settings", {"name": "Late show"}))

    assert "The project was renamed." in renamed.text
    assert renamed.value("name") == (await operator.get(created.location)).heading == "Late show"
    rows = (await operator.get(path)).find_all(".//tbody/tr/th/a")
    assert [row.text for row in rows] == ["Late show", "Morning show"]


@pytest.mark.parametrize("kind", ["organization", "project"])
async def test_a_page_from_before_an_upgrade_still_renames(operator: ConsoleClient, tenant: Tenant, kind: str) -> None:
    """Its form is sent to the home page, which had the settings then."""
    organization = f"/organizations/{tenant.organization_id}"
    path = organization if kind == "organization" else f"{organization}/projects/{tenant.project_id}"

    refused = await operator.submit(path, {"name": "x" * 200})
    renamed = await operator.submit(path, {"name": "Late show"})

    assert (refused.status, refused.value("name")) == (422, "x" * 200)
    assert renamed.location == f"{path}/settings"
    assert (await operator.get(path)).heading == "Late show"


async def test_a_name_that_is_taken_is_shown_again_with_the_reason(operator: ConsoleClient, tenant: Tenant) -> None:
    page = await operator.submit(f"/organizations/{tenant.organization_id}/projects", {"name": "Morning show"})

    assert page.status == 409
    assert page.trouble == "project_name_conflict"
    assert page.value("name") == "Morning show"


async def test_a_project_is_deleted_after_its_confirmation(operator: ConsoleClient, tenant: Tenant) -> None:
    path = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"

    page = await operator.follow(await operator.submit(f"{path}/delete", {"confirmation": tenant.project_id}))

    assert "Everything was deleted" in page.text
    assert (await operator.get(path)).status == 404


async def test_a_project_of_another_organization_is_a_page_that_does_not_exist(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    other = await tenant.api.make_organization("Radio Süd")

    assert (await operator.get(f"/organizations/{other}/projects/{tenant.project_id}")).status == 404
