"""The preflight: what a deletion would do, without doing anything."""

import pytest
from support.audience.faults import KINDS, core_beside, failing_audience
from support.database.content import read_content
from support.database.rival import Rival
from support.tenancy.closures import SUBJECTS, fill, organization_of, project_of
from support.tenancy.tenant import Tenant, make_second_project

from soundmark.kit.crypto.secret import Secret


async def test_it_counts_what_an_organisation_has(tenant: Tenant) -> None:
    await fill(tenant)
    await make_second_project(tenant)
    revoked = await tenant.make_code()
    await tenant.revoke(revoked["xr_id"])

    preflight = (await organization_of(tenant).preflight()).json

    assert preflight["can_delete"] is True
    assert preflight["blockers"] == []
    assert preflight["deletion_requested_at"] is None
    assert preflight["deletes"] == {
        "projects": 2, "campaigns": 1, "codes": 3, "active_codes": 2, "api_keys": 1, "members": 1,
        "audience_integrations": 1,
    }  # fmt: skip


async def test_it_counts_what_a_project_has(tenant: Tenant) -> None:
    await fill(await make_second_project(tenant))
    await tenant.make_code()

    preflight = (await project_of(tenant).preflight()).json

    assert preflight["deletes"] == {
        "campaigns": 0, "codes": 1, "active_codes": 1, "api_keys": 0, "audience_integrations": 0,
    }  # fmt: skip


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_it_changes_nothing(tenant: Tenant, rival: Rival, measuring: Rival, kind: str) -> None:
    await fill(tenant)
    subject = SUBJECTS[kind](tenant)
    first = await subject.preflight()
    before = await read_content(rival), await read_content(measuring)

    assert (await subject.preflight()).json == first.json

    assert (await read_content(rival), await read_content(measuring)) == before


@pytest.mark.parametrize("kind", SUBJECTS)
@pytest.mark.parametrize("fault", KINDS)
async def test_without_audience_it_says_so(
    tenant: Tenant, rival: Rival, database_url: Secret, kind: str, fault: str
) -> None:
    await tenant.give_cell(rival)
    async with failing_audience(fault) as url, core_beside(url, database_url, tenant.api.clock) as core:
        answer = await SUBJECTS[kind](Tenant(core, tenant.organization_id, tenant.project_id)).preflight()

    assert answer.status == 200
    assert answer.json["can_delete"] is False
    assert answer.json["blockers"] == [{"code": "audience_unavailable", "ids": []}]
    assert answer.json["deletes"]["audience_integrations"] is None
