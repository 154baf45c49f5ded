"""The job that finishes closures which were interrupted after the purge."""

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.closures import SUBJECTS, Subject, fill, leave_operation_pending, organization_of, settle_operation
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.tenancy.closure import jobs
from soundmark.core.features.tenancy.closure.jobs import resume_closures


async def interrupt(subject: Subject, rival: Rival) -> None:
    """Interrupt a closure while Core deletes: the connection is cut, as if the process had died."""
    async with rival.holding("SELECT FROM codes FOR UPDATE"):
        deleting = await rival.while_waiting(subject.delete())
        await rival.kill_waiting_sessions()
        assert (await deleting).code == "database_unavailable"


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_it_completes_what_nobody_works_on(tenant: Tenant, rival: Rival, work: Context, kind: str) -> None:
    await fill(tenant)
    subject = SUBJECTS[kind](tenant)
    certificate_id = (await subject.preflight()).json["certificate_id"]
    await interrupt(subject, rival)
    tenant.api.clock.advance(seconds=61)

    assert await resume_closures(work) == 1

    certificate = await tenant.api.get(f"/v1/deletion-certificates/{certificate_id}")
    assert certificate.json["deleted"]["core"]["codes"] == 2
    assert certificate.json["deleted"]["audience"]["events"] == 1
    assert await rival.rows("SELECT count(*) FROM codes") == [(0,)]
    assert await rival.rows("SELECT count(*) FROM closures") == [(0,)]


async def test_the_log_says_that_nobody_did_it(tenant: Tenant, rival: Rival, work: Context) -> None:
    await tenant.make_code()
    await interrupt(SUBJECTS["project"](tenant), rival)
    tenant.api.clock.advance(seconds=61)

    assert await resume_closures(work) == 1

    ((actor, project_id, _),) = await rival.audited("project.deleted")
    assert (actor, project_id) == ("system soundmark", tenant.project_id)


async def test_it_leaves_a_closure_alone_while_a_request_works_on_it(
    tenant: Tenant, rival: Rival, work: Context
) -> None:
    await tenant.make_code()
    await interrupt(organization_of(tenant), rival)
    tenant.api.clock.advance(seconds=59)

    assert await resume_closures(work) == 0


async def test_before_the_purge_only_a_person_goes_on(tenant: Tenant, rival: Rival, work: Context) -> None:
    entry_id = await leave_operation_pending(rival, tenant)
    await organization_of(tenant).delete()
    await settle_operation(rival, entry_id)
    tenant.api.clock.advance(days=1)

    assert await resume_closures(work) == 0

    assert (await organization_of(tenant).delete()).status == 204


async def test_a_shut_gate_is_judged_again(tenant: Tenant, rival: Rival, measuring: Rival, work: Context) -> None:
    """An operation that became pending after the purge holds the deletion up until it is settled."""
    measured = await fill(tenant)
    async with measuring.holding("LOCK TABLE events IN EXCLUSIVE MODE"):
        deleting = await measuring.while_waiting(organization_of(tenant).delete())
        entry_id = await leave_operation_pending(rival, tenant)
    assert (await deleting).code == "deletion_operations_pending"
    assert await rival.rows("SELECT phase FROM closures") == [("purged",)]
    tenant.api.clock.advance(seconds=61)

    assert await resume_closures(work) == 0
    assert await rival.rows("SELECT count(*) FROM codes") == [(2,)]
    # Until the last phases, receivers notice nothing.
    assert (await tenant.api.resolve(measured.code["broadcast_token"])).status == 200

    await settle_operation(rival, entry_id)
    assert await resume_closures(work) == 1
    assert await rival.rows("SELECT count(*) FROM codes") == [(0,)]


@pytest.mark.parametrize("at_once", [1, 2, 3, 10])
async def test_several_are_completed_however_many_are_listed_at_once(
    api: Api, people: People, rival: Rival, work: Context, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", at_once)
    for name in ("a", "b", "c"):
        tenant = await people.tenant_of(name)
        await tenant.make_code()
        await interrupt(organization_of(tenant), rival)
    api.clock.advance(seconds=61)

    assert await resume_closures(work) == 3
    assert await rival.rows("SELECT count(*) FROM organizations") == [(0,)]


async def test_one_that_fails_does_not_delay_the_others(
    api: Api, people: People, rival: Rival, work: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays as it is, the log names it, and the job completes it once it can."""
    monkeypatch.setattr(jobs, "_AT_ONCE", 1)
    first, second = [await people.tenant_of(name) for name in ("a", "b")]
    for tenant in (first, second):
        await tenant.make_code()
        await interrupt(organization_of(tenant), rival)
        api.clock.advance(seconds=1)
    api.clock.advance(seconds=61)
    certificate_id = (await organization_of(first).preflight()).json["certificate_id"]

    async with rival.refusing("deletion_certificates", unless=f"id <> '{certificate_id}'"):
        with capture_logs() as logged:
            assert await resume_closures(work) == 1

    (line,) = [line for line in logged if line["event"] == "closure_not_resumed"]
    assert (line["log_level"], line["subject_id"], line["error"]) == ("error", first.organization_id, "CheckViolation")
    assert await rival.rows("SELECT id FROM organizations") == [(first.organization_id,)]
    api.clock.advance(seconds=61)
    assert await resume_closures(work) == 1
    assert (await api.get(f"/v1/deletion-certificates/{certificate_id}")).status == 200
