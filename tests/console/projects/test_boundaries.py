"""What belongs to another project of the organisation is not found, whichever form is sent."""

import pytest
from support.console.client import ConsoleClient
from support.tenancy.tenant import Tenant, make_second_project


@pytest.mark.parametrize("act", ["", "/archive", "/stop"])
async def test_a_campaign_is_changed_in_its_own_project_alone(
    operator: ConsoleClient, tenant: Tenant, act: str
) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    other = await make_second_project(tenant)
    path = f"/organizations/{tenant.organization_id}/projects/{other.project_id}/campaigns/{campaign['id']}{act}"

    page = await operator.submit(path, {"name": "Renamed", "shown_name": campaign["name"]})

    assert (page.status, page.trouble) == (404, "page_not_found")
    summary = (await tenant.api.get(f"/v1/campaigns/{campaign['id']}/summary", params=tenant.query)).json
    assert (summary["campaign"], summary["counts"]["active"]) == (campaign, 1)


@pytest.mark.parametrize("act", ["rotate", "revoke"])
async def test_a_key_is_changed_in_its_own_project_alone(operator: ConsoleClient, tenant: Tenant, act: str) -> None:
    key = await tenant.make_key()
    other = await make_second_project(tenant)
    path = f"/organizations/{tenant.organization_id}/projects/{other.project_id}/api-keys/{key['id']}/{act}"

    page = await operator.submit(path)

    assert (page.status, page.trouble) == (404, "page_not_found")
    (kept,) = (await tenant.api.get("/v1/api-keys", params=tenant.in_project)).json["data"]
    assert (kept["status"], kept["secret_rotated_at"]) == ("active", None)
