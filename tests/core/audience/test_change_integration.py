"""Revocation, another secret, another retention and another key of an integration, through Core."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.audience.faults import KINDS, core_beside, failing_audience
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

Outcomes = Callable[[], Awaitable[list[tuple[str, str]]]]

BODIES: dict[str, Any] = {"revoke": None, "secret": None, "retention": {"retention_days": 7}, "core-key": None}
ACTIONS = {
    "revoke": "revocation",
    "secret": "secret_rotation",
    "retention": "retention_update",
    "core-key": "core_key_update",
}
each_change = pytest.mark.parametrize("change", BODIES)


async def do(tenant: Tenant, change: str, integration_id: str, **body: Any) -> Answer:
    return await tenant.change_integration(change, integration_id, json=body or BODIES[change])


async def everything(measuring: Rival) -> list[Any]:
    return await measuring.rows("SELECT i::text FROM integrations i ORDER BY id")


@pytest.fixture
async def integration(tenant: Tenant) -> dict[str, Any]:
    """An integration with a contract."""
    made = await tenant.make_integration()
    del made["hmac_secret"]
    return made


async def test_a_revoked_integration_stays_and_is_revoked(
    api: Api, tenant: Tenant, integration: dict[str, Any], outcomes: Outcomes
) -> None:
    now = api.clock.freeze()
    answer = await do(tenant, "revoke", integration["id"])
    revoked = {**integration, "status": "revoked", "revoked_at": format_timestamp(now)}
    assert (answer.status, answer.json) == (200, revoked)
    api.clock.advance(hours=1)
    again = await do(tenant, "revoke", integration["id"])
    assert (again.status, again.json) == (200, revoked)
    assert sorted(await outcomes()) == [("provisioning", "completed"), *[("revocation", "completed")] * 2]


async def test_a_new_secret_is_shown_once_and_the_old_one_is_gone(
    api: Api, tenant: Tenant, integration: dict[str, Any], measuring: Rival
) -> None:
    (before,) = await measuring.rows("SELECT sealed_secret FROM integrations")
    now = api.clock.freeze()
    answer = await do(tenant, "secret", integration["id"])
    assert answer.status == 200
    secret = answer.json.pop("hmac_secret")
    report = answer.json
    del report["hmac_secret"]
    assert (len(secret), report) == (47, {**integration, "secret_rotated_at": format_timestamp(now)})
    assert await measuring.rows("SELECT sealed_secret FROM integrations") != [before]
    listed = await api.get("/v1/audience/integrations", params=tenant.in_project)
    assert "hmac_secret" not in listed.body.decode()


async def test_a_change_of_retention_returns_what_was_deleted(
    api: Api, tenant: Tenant, integration: dict[str, Any], measuring: Rival, rival: Rival
) -> None:
    now = api.clock.freeze()
    (number,) = (await measuring.rows("SELECT number FROM integrations"))[0]
    for days_ago in (0, 3, 9, 9, 12):
        day = (now - timedelta(days=days_ago)).date()
        await measuring.run(
            "INSERT INTO integrity_days (integration, day) VALUES (%s, %s) ON CONFLICT DO NOTHING", number, day
        )
    answer = await do(tenant, "retention", integration["id"])
    assert (answer.status, answer.json) == (
        200,
        {
            "integration_id": integration["id"],
            "previous_retention_days": 14,
            "retention_days": 7,
            "deleted_events": 0,
            "deleted_integrity_days": 2,
        },
    )
    ((_, _, metadata),) = await rival.audited("audience.integration_retention_update")
    assert metadata == {"integration_id": integration["id"], "retention_days": 7}


async def test_a_demo_keeps_no_longer_than_demos_do(
    tenant: Tenant, integration: dict[str, Any], measuring: Rival, outcomes: Outcomes
) -> None:
    before = await everything(measuring)
    answer = await do(tenant, "retention", integration["id"], retention_days=15)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/retention_days"]
    assert (await everything(measuring), (await outcomes())[-1]) == (before, ("retention_update", "failed"))


@pytest.mark.parametrize("body", [{"retention_days": 0}, {"retention_days": 731}])
async def test_a_wrong_retention_is_refused_before_anything_is_asked(
    tenant: Tenant, integration: dict[str, Any], outcomes: Outcomes, body: dict[str, Any]
) -> None:
    path = f"/v1/audience/integrations/{integration['id']}/retention"
    answer = await tenant.api.patch(path, params=tenant.in_project, json=body)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert len(await outcomes()) == 1


async def test_a_retention_beyond_a_demos_needs_an_entitlement_that_holds(
    api: Api, tenant: Tenant, rival: Rival, outcomes: Outcomes
) -> None:
    """Core checks it again, even if it existed when the integration was created."""
    now = api.clock.freeze()
    await tenant.make_entitlement(rival, ends_at=now + timedelta(hours=1))
    made = await tenant.make_integration(mode="contract", retention_days=90)
    assert (await do(tenant, "retention", made["id"], retention_days=730)).status == 200
    api.clock.advance(hours=1)
    answer = await do(tenant, "retention", made["id"], retention_days=30)
    assert (answer.status, answer.code) == (409, "entitlement_required")
    assert (await outcomes())[-1] == ("retention_update", "failed")


async def test_the_key_that_is_published_is_trusted(
    tenant: Tenant, integration: dict[str, Any], measuring: Rival, rival: Rival
) -> None:
    """For example after a restore in which Audience is older."""
    await measuring.run("UPDATE integrations SET core_key_id = 'sig_another'")
    answer = await do(tenant, "core-key", integration["id"])
    replaced = {"integration_id": integration["id"], "core_key_id": integration["core_key_id"]}
    assert (answer.status, answer.json) == (200, replaced)
    (row,) = await measuring.rows("SELECT core_key_id, core_public_key, previous_key_id FROM integrations")
    (key,) = await rival.rows("SELECT key_id, public_key FROM signing_keys WHERE status = 'active'")
    assert row == (*key, "sig_another")


@each_change
async def test_the_log_records_it(
    tenant: Tenant, integration: dict[str, Any], rival: Rival, outcomes: Outcomes, change: str
) -> None:
    await do(tenant, change, integration["id"])
    ((actor, project_id, metadata),) = await rival.audited(f"audience.integration_{ACTIONS[change]}")
    assert (actor, project_id) == ("user operator", tenant.project_id)
    assert metadata["integration_id"] == integration["id"]
    assert (await outcomes())[-1] == (ACTIONS[change], "completed")


@each_change
async def test_a_malformed_integration_id_causes_no_call(tenant: Tenant, outcomes: Outcomes, change: str) -> None:
    answer = await do(tenant, change, "int_%00")
    assert (answer.status, answer.code) in {(404, "integration_not_found"), (404, "not_found")}
    assert await outcomes() == []


@pytest.mark.parametrize("change", ["secret", "retention", "core-key"])
async def test_a_revoked_integration_is_not_changed(
    tenant: Tenant, integration: dict[str, Any], measuring: Rival, outcomes: Outcomes, change: str
) -> None:
    await do(tenant, "revoke", integration["id"])
    before = await everything(measuring)
    answer = await do(tenant, change, integration["id"])
    assert (answer.status, answer.code) == (409, "integration_revoked")
    assert (await everything(measuring), (await outcomes())[-1]) == (before, (ACTIONS[change], "failed"))


@each_change
async def test_nothing_is_begun_while_its_tenant_is_being_deleted(
    tenant: Tenant, integration: dict[str, Any], rival: Rival, measuring: Rival, change: str
) -> None:
    before = await everything(measuring)
    async with rival.committing("UPDATE projects SET deletion_requested_at = now()"):
        changing = await rival.while_waiting(do(tenant, change, integration["id"]))
    assert ((await changing).status, (await changing).code) == (409, "resource_deletion_in_progress")
    assert await everything(measuring) == before


@each_change
async def test_an_intent_that_was_not_written_changes_nothing(
    tenant: Tenant, integration: dict[str, Any], rival: Rival, measuring: Rival, change: str
) -> None:
    before = await everything(measuring)
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        changing = await rival.while_waiting(do(tenant, change, integration["id"]))
        await rival.kill_waiting_sessions()
        answer = await changing
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await everything(measuring) == before


async def test_a_secret_is_returned_even_if_its_intent_cannot_be_finalised(
    tenant: Tenant, integration: dict[str, Any], rival: Rival, measuring: Rival, outcomes: Outcomes
) -> None:
    async with measuring.holding("LOCK TABLE integrations IN EXCLUSIVE MODE"):
        rotating = await measuring.while_waiting(do(tenant, "secret", integration["id"]))
        hold = rival.holding("SELECT FROM audit_entries WHERE outcome = 'requested' FOR UPDATE")
        await hold.__aenter__()
    await rival.until_someone_waits()
    await rival.kill_waiting_sessions()
    answer = await rotating
    await hold.__aexit__(None, None, None)
    assert (answer.status, len(answer.json["hmac_secret"])) == (200, 47)
    assert (await outcomes())[-1] == ("secret_rotation", "requested")


@pytest.mark.parametrize("fault", KINDS)
async def test_while_audience_fails_the_outcome_is_unknown(
    database_url: Secret, clock: FakeClock, rival: Rival, outcomes: Outcomes, fault: str
) -> None:
    """For a change of retention it is known: Audience is asked for the mode first, and was asked to change nothing."""
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as api, asyncio.timeout(30):
        tenant = await make_tenant(api)
        await tenant.give_cell(rival)
        answers = await asyncio.gather(*(do(tenant, change, "int_" + "A" * 22) for change in BODIES))
        assert {(answer.status, answer.code) for answer in answers} == {(503, "audience_unavailable")}
        assert set(await outcomes()) == {
            ("revocation", "requested"),
            ("secret_rotation", "requested"),
            ("core_key_update", "requested"),
            ("retention_update", "failed"),
        }
