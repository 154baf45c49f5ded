"""The cell of an organisation: given once, by its first integration or import, and never changed."""

import asyncio
from datetime import date

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Answer
from support.audience.cells import Divided
from support.audience.faults import core_beside
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.closures import organization_of, project_of
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.audience.legacy_import.service import ImportRefused, import_legacy_days
from soundmark.core.features.platform.cells.service import CellRefused, name_cell
from soundmark.kit.crypto.secret import Secret

DAYS = {date(2026, 1, 31): 5}
CELLS = "SELECT audience_cell, preferred_audience_cell FROM organizations ORDER BY created_at, id"


async def create(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/audience/integrations", json=tenant.integration_body())


async def test_new_organisations_get_the_cell_with_the_fewest(divided: Divided, rival: Rival) -> None:
    """Equal cells in the order of the file; cells that take none are left out, however empty they are."""
    tenants = [await make_tenant(divided.api) for _ in range(4)]
    assert await rival.rows(CELLS) == [(None, None)] * 4
    for tenant in tenants[:3]:
        await tenant.make_integration()
    assert await rival.rows(CELLS) == [("main", None), ("east", None), ("main", None), (None, None)]
    divided.file.takes_new["east"] = False
    divided.file.write()
    await tenants[3].make_integration()
    assert (await rival.rows(CELLS))[3] == ("main", None)


async def test_a_cell_never_changes(divided: Divided, rival: Rival) -> None:
    """Neither because it is full, nor because it takes no new ones, nor for another project."""
    tenant, other = await make_tenant(divided.api), await make_tenant(divided.api)
    await tenant.make_integration()
    await other.make_integration()
    divided.file.takes_new["main"] = False
    divided.file.write()
    await tenant.make_integration()
    await (await make_second_project(tenant)).make_integration()
    assert await divided.counts("integrations") == {"main": 3, "east": 1}
    assert await rival.rows(CELLS) == [("main", None), ("east", None)]


async def test_without_a_cell_that_takes_new_ones_nothing_is_created(divided: Divided, rival: Rival) -> None:
    divided.file.takes_new = {"main": False, "east": False}
    divided.file.write()
    tenant = await make_tenant(divided.api)
    with capture_logs() as log:
        refused = await create(tenant)
    assert (refused.status, refused.code) == (503, "audience_unavailable")
    assert "no_cell_takes_new" in {line["event"] for line in log}
    assert await rival.rows(CELLS) == [(None, None)]
    assert await rival.audited("audience.integration_provisioning") == []


async def test_two_first_integrations_at_once_get_one_cell(divided: Divided, rival: Rival) -> None:
    """Both have chosen while the organisation had none; the file changes between the two choices."""
    tenant = await make_tenant(divided.api)
    async with rival.holding("SELECT FROM organizations FOR UPDATE"):
        first = await rival.while_waiting(create(tenant))
        divided.file.takes_new["main"] = False
        divided.file.write()
        second = asyncio.create_task(create(tenant))
        await rival.until_someone_waits(2)
    assert [(await first).status, (await second).status] == [201, 201]
    assert await rival.rows(CELLS) == [("main", None)]
    assert await divided.counts("integrations") == {"main": 2, "east": 0}


async def test_a_refused_creation_gives_no_cell(divided: Divided, rival: Rival) -> None:
    tenant = await make_tenant(divided.api)
    stranger = Tenant(divided.api, tenant.organization_id, "prj_" + "u" * 22)
    assert (await create(stranger)).status == 404
    contract = tenant.integration_body(mode="contract")
    refused = await tenant.api.post("/v1/audience/integrations", json=contract)
    assert (refused.status, refused.code) == (409, "entitlement_required")
    assert await rival.rows(CELLS) == [(None, None)]


async def test_an_organisation_without_a_cell_has_nothing_in_audience(
    tenant: Tenant, rival: Rival, database_url: Secret, clock: FakeClock
) -> None:
    """And no Audience is called for it: this one is away."""
    async with core_beside("http://127.0.0.1:9", database_url, clock) as core:
        it = Tenant(core, tenant.organization_id, tenant.project_id)
        assert (await core.get("/v1/audience/integrations", params=it.in_project)).json["data"] == []
        assert (await core.get("/v1/usage", params=it.query)).json["audience"]["status"] == "available"
        report = await core.get("/v1/audience/reports/int_" + "a" * 22, params=it.in_project)
        assert (report.status, report.code) == (404, "integration_not_found")
        renamed = await core.patch(
            f"/v1/audience/integrations/int_{'a' * 22}", params=it.in_project, json={"name": "x"}
        )
        assert (renamed.status, renamed.code) == (404, "integration_not_found")
        for change, body in {
            "revoke": None,
            "secret": None,
            "retention": {"retention_days": 7},
            "core-key": None,
        }.items():
            refused = await it.change_integration(change, "int_" + "a" * 22, json=body)
            assert (refused.status, refused.code) == (404, "integration_not_found")
        unknown = {"audience": {"enabled": True, "integration_id": "int_" + "a" * 22}}
        assert (await core.post("/v1/codes", json=it.code_body(**unknown))).code == "integration_not_found"
        for subject in (project_of(it), organization_of(it)):
            preflight = (await subject.preflight()).json
            assert (preflight["can_delete"], preflight["deletes"]["audience_integrations"]) == (True, 0)
        assert (await core.get(f"/v1/projects/{it.project_id}/export", params=it.query)).status == 200
        certificate = await organization_of(it).certificate()
    none = {"integrations": 0, "events": 0, "integrity_days": 0, "legacy_days": 0, "spent_proofs": 0}
    assert certificate["deleted"]["audience"] == none
    assert await rival.rows(CELLS) == []


@pytest.mark.parametrize("period", [{}, {"to": "2026-03-01T00:00:00Z"}, {"from": "2026-01-30T12:00:00Z"}])
async def test_its_legacy_report_is_the_one_of_a_cell_without_days(
    tenant: Tenant, rival: Rival, clock: FakeClock, period: dict[str, str]
) -> None:
    clock.freeze()
    params = {**tenant.in_project, **period}
    without = (await tenant.api.get("/v1/audience/legacy-report", params=params)).json
    await tenant.give_cell(rival)
    assert (await tenant.api.get("/v1/audience/legacy-report", params=params)).json == without
    assert (without["events"], without["by_day"]) == (0, [])


async def test_an_import_gives_a_cell(divided: Divided, work: Context, rival: Rival) -> None:
    tenant, other = await make_tenant(divided.api), await make_tenant(divided.api)
    await other.make_integration()
    for _ in range(2):
        await import_legacy_days(work, tenant.organization_id, tenant.project_id, DAYS, request_id="req_1")
    assert await divided.counts("legacy_days") == {"main": 0, "east": 1}
    report = await tenant.api.get("/v1/audience/legacy-report", params=tenant.in_project)
    assert report.json["events"] == 5
    assert await rival.rows(CELLS) == [("east", None), ("main", None)]


async def test_nothing_is_imported_into_what_is_being_deleted(divided: Divided, work: Context, rival: Rival) -> None:
    """It would outlive its subject: a deletion of an organisation without a cell calls no Audience."""
    tenant = await make_tenant(divided.api)
    for table in ("projects", "organizations"):
        await rival.run("UPDATE projects SET deletion_requested_at = NULL")
        await rival.run(f"UPDATE {table} SET deletion_requested_at = now()")
        with pytest.raises(ImportRefused, match="is being deleted"):
            await import_legacy_days(work, tenant.organization_id, tenant.project_id, DAYS, request_id="req_1")
    assert await rival.rows(CELLS) == [(None, None)]
    assert await divided.counts("legacy_days") == {"main": 0, "east": 0}


async def test_an_operator_names_the_cell_before_the_first_integration(
    divided: Divided, work: Context, rival: Rival
) -> None:
    """Even one that takes no new ones; another one until then, and none afterwards."""
    divided.file.takes_new["east"] = False
    divided.file.write()
    tenant = await make_tenant(divided.api)
    for name in ("main", "east"):
        await name_cell(work, tenant.organization_id, name)
    assert await rival.rows(CELLS) == [(None, "east")]
    await tenant.make_integration()
    assert await rival.rows(CELLS) == [("east", None)]
    with pytest.raises(CellRefused, match="is in the cell east, and stays there"):
        await name_cell(work, tenant.organization_id, "main")
    assert await divided.counts("integrations") == {"main": 0, "east": 1}


async def test_a_cell_that_is_not_there_cannot_be_named(divided: Divided, work: Context, rival: Rival) -> None:
    tenant = await make_tenant(divided.api)
    with pytest.raises(CellRefused, match="there is no cell 'west'; there are east, main"):
        await name_cell(work, tenant.organization_id, "west")
    for unknown in ("org_" + "u" * 22, "no id"):
        with pytest.raises(CellRefused, match="there is no organisation"):
            await name_cell(work, unknown, "main")
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")
    with pytest.raises(CellRefused, match="or it is being deleted"):
        await name_cell(work, tenant.organization_id, "main")
    assert await rival.rows(CELLS) == [(None, None)]


async def test_the_name_counts_that_was_given_while_an_integration_was_created(
    divided: Divided, work: Context, rival: Rival
) -> None:
    tenant = await make_tenant(divided.api)
    async with rival.holding("LOCK TABLE members IN EXCLUSIVE MODE"):
        creating = await rival.while_waiting(create(tenant))
        await name_cell(work, tenant.organization_id, "east")
    assert (await creating).status == 201
    assert await rival.rows(CELLS) == [("east", None)]
