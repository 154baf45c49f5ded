"""The deadline of a call to Audience travels with it over HTTP: when Core gives up, Audience stops."""

from collections.abc import AsyncIterator

import pytest
from support.api.core_client import Api
from support.api.core_settings import jobs_settings
from support.audience.faults import core_beside
from support.database.rival import Rival
from support.outside.misbehaving_server import answer, misbehaving_server
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.problems import AudienceUnavailable
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret

WAITING = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
async def hasty(database_url: Secret, measuring_url: str, clock: FakeClock) -> AsyncIterator[Api]:
    """A Core that waits a second for the real Audience."""
    async with core_beside(measuring_url, database_url, clock) as api:
        yield api


async def test_when_core_gives_up_no_query_runs_on_and_nothing_was_changed(
    hasty: Api, tenant: Tenant, measuring: Rival
) -> None:
    integration = await tenant.make_integration()
    impatient = Tenant(hasty, tenant.organization_id, tenant.project_id)

    async with measuring.holding("LOCK TABLE integrations IN ACCESS EXCLUSIVE MODE"):
        given_up = await impatient.change_integration("revoke", integration["id"])
        await measuring.until_rows(WAITING)

    assert (given_up.status, given_up.code) == (503, "audience_unavailable")
    assert await measuring.rows("SELECT revoked_at FROM integrations") == [(None,)]
    assert (await impatient.change_integration("revoke", integration["id"])).json["status"] == "revoked"


async def test_a_deletion_that_core_gave_up_on_finishes_when_nothing_blocks_it(
    hasty: Api, tenant: Tenant, measuring: Rival
) -> None:
    integration = await tenant.make_integration()
    impatient = Tenant(hasty, tenant.organization_id, tenant.project_id)

    async with measuring.holding("SELECT FROM integrations FOR UPDATE"):
        given_up = await impatient.change_integration("retention", integration["id"], json={"retention_days": 7})
    assert (given_up.status, given_up.code) == (503, "audience_unavailable")

    await measuring.until_rows("SELECT retention_days FROM integrations", (7,))


async def test_the_worker_sends_its_name_and_its_deadline(database_url: Secret) -> None:
    async with misbehaving_server(answer(b"{}")) as server:
        work = make_job_context(jobs_settings(database_url, AUDIENCE_URL=server.url, PRIVATE_TIMEOUT_S="7.5"))
        with pytest.raises(AudienceUnavailable):
            await work.cells.open("main").find_applied("aud_1", request_id="req_1")
        await work.cells.aclose()

    lines = server.requests[0].lower().split(b"\r\n")
    assert {b"x-svc-caller: soundmark-core-jobs", b"x-svc-timeout-ms: 7500"} <= set(lines)
