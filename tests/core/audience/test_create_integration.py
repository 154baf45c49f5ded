"""`POST /v1/audience/integrations`: created once, logged before and after, with its secret in one response only."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.audience.faults import FAULTS, core_beside, failing_audience
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.audience.integrations import jobs
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

Outcomes = Callable[[], Awaitable[list[tuple[str, str]]]]


async def create(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/audience/integrations", json=tenant.integration_body(**changes))


async def stored(measuring: Rival) -> list[Any]:
    return await measuring.rows(
        "SELECT id, organization_id, project_id, mode, retention_days, core_key_id FROM integrations"
    )


async def test_an_integration_is_created_and_its_secret_shown_once(
    api: Api, tenant: Tenant, rival: Rival, measuring: Rival
) -> None:
    now = api.clock.freeze()
    answer = await create(tenant)
    made = answer.json
    secret, integration_id, core_key_id = made.pop("hmac_secret"), made["id"], made["core_key_id"]
    assert answer.status == 201
    assert made == {
        "id": integration_id,
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "name": None,
        "mode": "demo",
        "retention_days": 14,
        "status": "active",
        "core_key_id": core_key_id,
        "created_at": format_timestamp(now),
        "secret_rotated_at": None,
        "revoked_at": None,
    }
    assert re.fullmatch(r"int_[A-Za-z0-9_-]{22}", integration_id)
    assert re.fullmatch(r"xhm_[A-Za-z0-9_-]{43}", secret)
    (active,) = await rival.rows("SELECT key_id FROM signing_keys WHERE status = 'active'")
    assert active == (core_key_id,)
    expected = (integration_id, tenant.organization_id, tenant.project_id, "demo", 14, core_key_id)
    assert await stored(measuring) == [expected]
    tables = await rival.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (table,) in tables:
        assert secret not in str(await rival.rows(f'SELECT t::text FROM "{table}" t')), table


async def test_the_log_holds_the_caller_the_request_and_the_outcome(api: Api, tenant: Tenant, rival: Rival) -> None:
    now = api.clock.freeze()
    await create(tenant)
    metadata = {"mode": "demo", "retention_days": 14}
    action = "audience.integration_provisioning"
    assert await rival.audited(action) == [("user operator", tenant.project_id, metadata)]
    (entry,) = (await api.get("/v1/audit-log", params={**tenant.query, "action": action})).json["data"]
    moment = format_timestamp(now)
    assert (entry["outcome"], entry["created_at"], entry["finalised_at"]) == ("completed", moment, moment)


async def test_the_audit_chain_holds_with_entries_that_were_finalised(tenant: Tenant, rival: Rival) -> None:
    """Such an entry is sealed when it is requested, and again when it has its outcome."""
    await create(tenant)
    await rival.until_rows("SELECT FROM audit_unsealed")
    verification = await tenant.api.get("/v1/audit-log/verification", params=tenant.query)
    assert verification.json["verified"] is True
    stages = await rival.rows(
        "SELECT stage FROM audit_seals s JOIN audit_entries e ON e.id = s.entry_id"
        " WHERE action LIKE 'audience.%%' ORDER BY position"
    )
    assert stages == [("requested",), ("final",)]


@pytest.mark.parametrize("mode", ["contract", "self_service"])
async def test_the_other_modes_need_an_entitlement_of_their_own(
    tenant: Tenant, rival: Rival, measuring: Rival, mode: str
) -> None:
    other = {"contract": "self_service", "self_service": "contract"}[mode]
    await tenant.make_entitlement(rival, other)
    answer = await create(tenant, mode=mode, retention_days=730)
    assert (answer.status, answer.code) == (409, "entitlement_required")
    assert (await stored(measuring), await rival.audited("audience.integration_provisioning")) == ([], [])

    await tenant.make_entitlement(rival, mode, monthly_events=70)
    assert (await create(tenant, mode=mode, retention_days=730)).status == 201
    rows = await measuring.rows(
        "SELECT organization_id, mode, monthly_event_quota, ends_at, revision FROM entitlements"
    )
    assert rows == [(tenant.organization_id, mode, 70, None, 1)]


async def test_an_entitlement_holds_until_its_end_and_reaches_audience(
    api: Api, tenant: Tenant, rival: Rival, measuring: Rival
) -> None:
    now = api.clock.freeze()
    ends_at = now + timedelta(hours=1)
    await tenant.make_entitlement(rival, ends_at=ends_at)
    api.clock.advance(seconds=3599)
    assert (await create(tenant, mode="contract")).status == 201
    assert await measuring.rows("SELECT ends_at FROM entitlements") == [(ends_at,)]
    api.clock.advance(seconds=1)
    answer = await create(tenant, mode="contract")
    assert (answer.status, answer.code) == (409, "entitlement_required")
    assert (await create(tenant)).status == 201, "a demo needs none"


async def test_the_entitlement_of_another_organisation_entitles_nobody_else(api: Api, rival: Rival) -> None:
    entitled, other = await make_tenant(api), await make_tenant(api)
    await entitled.make_entitlement(rival)
    assert (await create(other, mode="contract")).code == "entitlement_required"


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"mode": "trial"}, "/mode"),
        ({"retention_days": 0}, "/retention_days"),
        ({"retention_days": 731}, "/retention_days"),
        ({"retention_days": 15}, "/retention_days"),
    ],
    ids=str,
)
async def test_a_body_that_is_wrong_is_refused(
    tenant: Tenant, measuring: Rival, outcomes: Outcomes, changes: dict[str, Any], pointer: str
) -> None:
    answer = await create(tenant, **changes)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == [pointer]
    assert (await stored(measuring), await outcomes()) == ([], [])


async def test_a_closure_that_comes_second_finds_the_intent(tenant: Tenant, rival: Rival, measuring: Rival) -> None:
    """The intent exists before Audience is called: whoever closes the tenant can see that work is under way."""
    async with measuring.holding("LOCK TABLE integrations IN EXCLUSIVE MODE"):
        creating = await measuring.while_waiting(create(tenant))
        await rival.run("UPDATE organizations SET deletion_requested_at = now()")
        assert await rival.rows("SELECT outcome FROM audit_entries WHERE action LIKE 'audience.%%'") == [("requested",)]
    assert (await creating).status == 201, "what was begun is finished"


async def test_the_answer_is_sent_even_if_its_intent_cannot_be_finalised(
    tenant: Tenant, rival: Rival, measuring: Rival, outcomes: Outcomes, work: Context
) -> None:
    """As if Core or its database went away between phases 2 and 3: the secret is returned once."""
    async with measuring.holding("LOCK TABLE integrations IN EXCLUSIVE MODE"):
        creating = await measuring.while_waiting(create(tenant))
        hold = rival.holding("SELECT FROM audit_entries WHERE outcome = 'requested' FOR UPDATE")
        await hold.__aenter__()
    await rival.until_someone_waits()
    await rival.kill_waiting_sessions()
    answer = await creating
    await hold.__aexit__(None, None, None)
    assert (answer.status, len(answer.json["hmac_secret"])) == (201, 47)
    assert await outcomes() == [("provisioning", "requested")]

    tenant.api.clock.advance(seconds=61)
    assert await jobs.settle_intents(work) == 1
    assert await outcomes() == [("provisioning", "completed")]
    assert len(await stored(measuring)) == 1


async def test_without_a_written_intent_audience_is_not_called(
    tenant: Tenant, rival: Rival, measuring: Rival, outcomes: Outcomes
) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        creating = await rival.while_waiting(create(tenant))
        await rival.kill_waiting_sessions()
        answer = await creating
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert (await stored(measuring), await outcomes()) == ([], [])


@pytest.mark.parametrize("fault", FAULTS)
async def test_while_audience_fails_everything_else_works(
    database_url: Secret, clock: FakeClock, rival: Rival, outcomes: Outcomes, fault: str
) -> None:
    """Within the deadline of a second. The outcome is unknown, so the intent stays open until it is settled."""
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as api, asyncio.timeout(30):
        tenant = await make_tenant(api)
        await tenant.give_cell(rival)
        code = await tenant.make_code()
        failed, issued, resolved, listed = await asyncio.gather(
            create(tenant),
            tenant.make_code(),
            api.resolve(code["broadcast_token"]),
            api.get("/v1/audience/integrations", params=tenant.in_project),
        )
        assert (failed.status, failed.code) == (503, "audience_unavailable")
        assert (listed.status, listed.code) == (503, "audience_unavailable")
        assert (issued["status"], resolved.status) == ("active", 200)
        assert await outcomes() == [("provisioning", "requested")]
