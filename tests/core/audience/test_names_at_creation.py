"""The name of a new integration: it waits with the audit intent, and outlives no failure."""

from typing import Any

import pytest
from support.audience.faults import PROBLEM, core_beside, failing_audience
from support.database.rival import Rival
from support.outside.misbehaving_server import answer, misbehaving_server
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.features.audience.integrations import jobs
from soundmark.kit.crypto.secret import Secret

NAMES = "SELECT named_id, name FROM integration_names ORDER BY name"
PROVISIONING = "audience.integration_provisioning"


async def intent_of(rival: Rival) -> str:
    ((identity,),) = await rival.rows("SELECT id FROM audit_entries WHERE action = %s", PROVISIONING)
    return str(identity)


async def list_names(tenant: Tenant) -> list[str | None]:
    listed = await tenant.api.get("/v1/audience/integrations", params=tenant.in_project)
    return [each["name"] for each in listed.json["data"]]


async def test_the_name_is_stored_with_the_intent_and_not_in_the_log(
    tenant: Tenant, rival: Rival, measuring: Rival
) -> None:
    body = tenant.integration_body(name="Studio")
    async with measuring.holding("LOCK TABLE operations IN EXCLUSIVE MODE"):
        creating = await measuring.while_waiting(tenant.api.post("/v1/audience/integrations", json=body))
        assert await rival.rows(NAMES) == [(await intent_of(rival), "Studio")]
    made = (await creating).json
    assert await rival.rows(NAMES) == [(made["id"], "Studio")]
    ((_, _, metadata),) = await rival.audited(PROVISIONING)
    assert metadata == {"mode": "demo", "retention_days": 14}


async def test_a_refusal_of_audience_leaves_no_name(
    tenant: Tenant, rival: Rival, database_url: Secret, clock: FakeClock
) -> None:
    """Its answer says that nothing was created."""
    refusing = answer(b'{"code": "entitlement_required"}', status="409 No", media_type=PROBLEM)
    async with misbehaving_server(refusing) as server, core_beside(server.url, database_url, clock) as core:
        refused = await core.post("/v1/audience/integrations", json=tenant.integration_body(name="Studio"))
    assert (refused.status, refused.code) == (409, "entitlement_required")
    assert await rival.rows(NAMES) == []


@pytest.mark.parametrize("fault", ["down", "slow"])
async def test_a_name_whose_integration_was_never_created_goes_with_the_failure(
    tenant: Tenant, rival: Rival, work: Context, database_url: Secret, clock: FakeClock, fault: str
) -> None:
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as core:
        failed = await core.post("/v1/audience/integrations", json=tenant.integration_body(name="Studio"))
    assert (failed.status, failed.code) == (503, "audience_unavailable")
    clock.advance(minutes=6)
    assert await jobs.settle_intents(work) == 1
    assert await rival.rows(NAMES) == []
    assert await list_names(tenant) == []


@pytest.fixture
async def lost(tenant: Tenant, rival: Rival) -> dict[str, Any]:
    """An integration that was created, although Core did not learn of it: its name still waits."""
    made = await tenant.make_integration(name="Studio")
    intent_id = await intent_of(rival)
    await rival.run("UPDATE audit_entries SET outcome = 'requested', finalised_at = NULL WHERE id = %s", intent_id)
    await rival.run("UPDATE integration_names SET named_id = %s", intent_id)
    return made


async def test_a_name_whose_answer_was_lost_is_given_by_the_job(
    tenant: Tenant, lost: dict[str, Any], rival: Rival, work: Context
) -> None:
    assert await list_names(tenant) == [None]
    tenant.api.clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 1
    assert await list_names(tenant) == ["Studio"]
    assert await rival.rows(NAMES) == [(lost["id"], "Studio")]


async def test_a_name_that_was_given_meanwhile_stays(
    tenant: Tenant, lost: dict[str, Any], rival: Rival, work: Context
) -> None:
    path = f"/v1/audience/integrations/{lost['id']}"
    await tenant.api.patch(path, params=tenant.in_project, json={"name": "Lobby"})
    tenant.api.clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 1
    assert await rival.rows(NAMES) == [(lost["id"], "Lobby")]


async def test_the_secret_is_returned_although_the_name_cannot_be_given(
    tenant: Tenant, rival: Rival, measuring: Rival, work: Context
) -> None:
    """It is answered only once, so the job gives the name later."""
    body = tenant.integration_body(name="Studio")
    async with rival.holding("SELECT FROM audit_entries FOR UPDATE"):
        async with measuring.holding("LOCK TABLE operations IN EXCLUSIVE MODE"):
            creating = await measuring.while_waiting(tenant.api.post("/v1/audience/integrations", json=body))
            locking = rival.holding("SELECT FROM integration_names FOR UPDATE")
            await locking.__aenter__()
        await rival.until_someone_waits()
        await rival.kill_waiting_sessions()
        made = await creating
        await locking.__aexit__(None, None, None)
    assert (made.status, made.json["name"]) == (201, "Studio")
    assert made.json["hmac_secret"].startswith("xhm_")
    tenant.api.clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 1
    assert await list_names(tenant) == ["Studio"]
