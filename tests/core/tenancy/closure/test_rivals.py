"""Several who close at once, and owners who lose their role meanwhile."""

import asyncio

import pytest
from support.database.rival import Rival
from support.tenancy.closures import SUBJECTS, fill, organization_of, project_of
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.closure import ClosureSubject
from soundmark.core.domain.tenancy.scope import SYSTEM
from soundmark.core.features.tenancy.closure.deletion import delete_everything


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_two_at_once_both_end(tenant: Tenant, people: People, rival: Rival, kind: str) -> None:
    """Both with 204, or the later one with 404; there is one certificate."""
    other = await people.member(tenant, rival, "second-owner", "owner")
    await fill(tenant)

    answers = await asyncio.gather(SUBJECTS[kind](tenant).delete(), SUBJECTS[kind](other).delete())

    assert {answer.status for answer in answers} <= {204, 404}
    assert 204 in {answer.status for answer in answers}
    assert await rival.rows("SELECT count(*) FROM deletion_certificates") == [(1,)]


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_two_who_passed_the_gates_delete_together(tenant: Tenant, rival: Rival, work: Context, kind: str) -> None:
    """Neither fails when the other one has deleted the rest, and there is one certificate."""
    await fill(tenant)
    project_id = tenant.project_id if kind == "project" else None
    async with rival.holding("SELECT FROM codes FOR UPDATE"):
        cut_off = await rival.while_waiting(SUBJECTS[kind](tenant).delete())
        await rival.kill_waiting_sessions()
    assert (await cut_off).status == 503
    assert await rival.rows("SELECT phase FROM closures") == [("deleting",)]

    async with rival.holding("SELECT FROM codes FOR UPDATE"):
        subject = ClosureSubject(tenant.organization_id, project_id)
        deleting = [asyncio.create_task(delete_everything(work, subject, SYSTEM)) for _ in range(2)]
        await rival.until_someone_waits(2)
    await asyncio.gather(*deleting)

    assert await rival.rows("SELECT FROM closures") == []
    assert await rival.rows("SELECT count(*) FROM deletion_certificates") == [(1,)]


async def test_an_owner_who_is_removed_meanwhile_does_not_go_on(
    tenant: Tenant, people: People, rival: Rival, measuring: Rival
) -> None:
    """Audience is purged, and nothing is deleted in Core; another owner completes it."""
    leaving = await people.member(tenant, rival, "leaving", "owner")
    await fill(tenant)

    async with measuring.holding("LOCK TABLE events IN EXCLUSIVE MODE"):
        deleting = await measuring.while_waiting(organization_of(leaving).delete())
        removed = await tenant.api.delete("/v1/members/leaving", params=tenant.query)
        assert removed.status == 204

    assert (await deleting).code == "organization_not_found"
    assert await rival.rows("SELECT phase FROM closures") == [("purged",)]
    assert await rival.rows("SELECT count(*) FROM codes") == [(2,)]
    assert (await organization_of(tenant).certificate())["deleted"]["audience"]["events"] == 1


async def test_an_administrator_who_is_demoted_meanwhile_does_not_go_on(
    tenant: Tenant, people: People, rival: Rival, measuring: Rival
) -> None:
    demoted = await people.member(tenant, rival, "demoted", "admin")
    await fill(tenant)

    async with measuring.holding("LOCK TABLE events IN EXCLUSIVE MODE"):
        deleting = await measuring.while_waiting(project_of(demoted).delete())
        await rival.run("UPDATE members SET role = 'member' WHERE subject_id = 'demoted'")

    assert (await deleting).code == "forbidden"
    assert await rival.rows("SELECT count(*) FROM codes") == [(2,)]


async def test_a_code_that_is_being_revoked_is_deleted_afterwards(tenant: Tenant, rival: Rival) -> None:
    """Commands on rows and the deletion of the rows wait for each other in one order."""
    codes = [await tenant.make_code() for _ in range(5)]

    answers = await asyncio.gather(organization_of(tenant).delete(), *(tenant.revoke(code["xr_id"]) for code in codes))

    assert answers[0].status == 204
    assert {answer.status for answer in answers[1:]} <= {200, 404}
    assert await rival.rows("SELECT count(*) FROM broadcasts") == [(0,)]
