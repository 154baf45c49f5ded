"""Suspending and restoring an organisation: what is answered, recorded and told."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.suspension import REASON, path_of, restore, suspend
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp

ABSENT = "org_" + "A" * 22
ACTIONS = (
    "SELECT action, actor_type, actor_id, metadata FROM audit_entries"
    " WHERE action IN ('organization.suspended', 'organization.restored') ORDER BY created_at, id"
)
JOBS = "SELECT task_name FROM procrastinate_jobs WHERE lock LIKE 'suspension:%%' ORDER BY id"


async def listed(api: Api, organization_id: str) -> Any:
    answer = await api.get("/v1/platform/organizations", params={"search": organization_id})
    (found,) = answer.json["data"]
    return found


async def test_a_suspension_is_answered_listed_and_shown_to_members(tenant: Tenant) -> None:
    """With the reason for the platform alone."""
    api = tenant.api
    now = format_timestamp(api.clock.freeze())
    before = await listed(api, tenant.organization_id)
    answer = await suspend(api, tenant.organization_id, f"  {REASON}\n")
    record = {**before, "suspended_at": now, "suspension_reason": REASON}
    assert (answer.status, answer.json) == (200, {**record, "packs_valid_until": None})
    assert await listed(api, tenant.organization_id) == record
    (shown,) = (await api.get("/v1/organizations")).json["data"]
    assert shown["suspended_at"] == now
    assert "suspension_reason" not in shown
    restored = await restore(api, tenant.organization_id)
    assert (restored.status, restored.json) == (200, before)
    (shown,) = (await api.get("/v1/organizations")).json["data"]
    assert shown["suspended_at"] is None


async def test_a_repetition_changes_nothing_and_another_reason_replaces_the_first(tenant: Tenant, rival: Rival) -> None:
    """One audit entry for each change; only suspending and restoring tell Audience and the owners."""
    api = tenant.api
    first = (await suspend(api, tenant.organization_id)).json
    for reason in (REASON, "Another reason.", "Another reason."):
        api.clock.advance(seconds=1)
        answer = await suspend(api, tenant.organization_id, reason)
        assert answer.json == {**first, "suspension_reason": reason}
    for _ in range(2):
        api.clock.advance(seconds=1)
        await restore(api, tenant.organization_id)
    platform = ("platform", "operator", "{}")
    assert await rival.rows(ACTIONS) == [
        ("organization.suspended", *platform),
        ("organization.suspended", *platform),
        ("organization.restored", *platform),
    ]
    # The job that carries the restoration has taken the place of the one before.
    told = ("tell_owners_of_suspension",)
    assert await rival.rows(JOBS) == [told, ("carry_suspension",), told]
    revision = "SELECT suspension_revision FROM organizations"
    assert await rival.rows(revision) == [(3,)]


async def test_what_was_never_suspended_is_restored_without_a_trace(tenant: Tenant, rival: Rival) -> None:
    answer = await restore(tenant.api, tenant.organization_id)
    assert (answer.status, answer.json["suspended_at"]) == (200, None)
    assert await rival.rows(ACTIONS) == []
    assert await rival.rows(JOBS) == []


@pytest.mark.parametrize("organization_id", [ABSENT, "nobody", "org_'; --"])
async def test_an_unknown_organisation_is_not_found(api: Api, organization_id: str) -> None:
    for answer in (await suspend(api, organization_id), await restore(api, organization_id)):
        assert (answer.status, answer.code) == (404, "organization_not_found")


@pytest.mark.parametrize("reason", ["", "  \n", "a" * 501, "a\0", "\x1b[2J", None, 7, ["x"]])
async def test_a_reason_that_says_nothing_or_too_much_is_refused(tenant: Tenant, reason: Any) -> None:
    answer = await suspend(tenant.api, tenant.organization_id, reason)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert (await listed(tenant.api, tenant.organization_id))["suspended_at"] is None


@pytest.mark.parametrize("reason", ["a" * 500, "First line\nSecond line\twith a tab", "é" * 500])
async def test_a_reason_may_have_500_characters_and_several_lines(tenant: Tenant, reason: str) -> None:
    assert (await suspend(tenant.api, tenant.organization_id, reason)).json["suspension_reason"] == reason


@pytest.mark.parametrize("body", [{}, {"reason": REASON, "until": None}, [REASON], REASON])
async def test_the_body_is_a_closed_object(tenant: Tenant, body: Any) -> None:
    assert (await tenant.api.put(path_of(tenant.organization_id), json=body)).status == 422


async def test_an_organisation_that_is_being_deleted_can_be_suspended(tenant: Tenant, rival: Rival) -> None:
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")
    answer = await suspend(tenant.api, tenant.organization_id)
    assert (answer.status, answer.json["deletion_requested_at"] is None) == (200, False)


async def test_a_killed_command_leaves_nothing_of_a_suspension(tenant: Tenant, rival: Rival) -> None:
    """The row, the entry and both jobs are one commit."""
    code = await tenant.make_code()
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        suspending = await rival.while_waiting(suspend(tenant.api, tenant.organization_id))
        await rival.kill_waiting_sessions()
        assert (await suspending).code == "database_unavailable"
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 200
    assert await rival.rows("SELECT FROM suspended_organizations") == []
    assert await rival.rows(JOBS) == []


async def test_a_suspended_organisation_can_leave(tenant: Tenant, rival: Rival) -> None:
    """And nothing of its suspension stays behind."""
    await tenant.make_code()
    await suspend(tenant.api, tenant.organization_id)
    path = f"/v1/organizations/{tenant.organization_id}"
    deleted = await tenant.api.call("DELETE", path, json={"confirmation": tenant.organization_id})
    assert deleted.status == 204, deleted.body
    assert await rival.rows("SELECT FROM suspended_organizations") == []
    assert (await suspend(tenant.api, tenant.organization_id)).code == "organization_not_found"


async def test_webhook_endpoints_hear_of_it_without_the_reason(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_webhook_endpoint()
    await suspend(tenant.api, tenant.organization_id)
    acts = await rival.rows("SELECT type, actor_type, data FROM webhook_acts WHERE type LIKE 'organization.%%'")
    assert acts == [("organization.suspended", "platform", "{}")]
