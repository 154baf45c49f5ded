"""Nothing is changed in an organisation that its audit log does not tell, in the transaction of the change itself."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, get_args

import pytest
from support.core_client import Answer, Api
from support.operations import list_operations
from support.people import People
from support.rival import Rival
from support.tenant import Tenant, make_tenant

from soundmark.core.domain.audit import AuditAction

COLLEAGUE = "colleague"
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
# By an operator's command, which is no operation of the API.
OF_COMMANDS = {"billing.entitlement_changed"}
# By a method that is not safe: what is asked for is too much for a URL, or what it changes is Audience's.
READING = {"bundle_codes", "deliver_event", "recover_code", "recover_codes"}
SECRET_PREFIXES = ("xak_", "xin_", "xop_", "xhm_", "eyJ")


@dataclass(frozen=True)
class Given:
    """An organisation of the operator, what it holds, and somebody who is invited."""

    tenant: Tenant
    xr_id: str
    api_key_id: str
    invitation_id: str
    campaign_id: str
    integration_id: str
    token: str
    ada: Api


@dataclass(frozen=True)
class Told:
    """What an operation is to tell, and how it is carried out once."""

    action: AuditAction
    status: int
    act: Callable[[Given], Awaitable[Answer]]
    actor_id: str = "operator"


def call(method: str, path: str, **options: Any) -> Callable[[Given], Awaitable[Answer]]:
    """The operation with its organisation in the query."""
    return lambda given: given.tenant.api.call(
        method, path.format(given=given, tenant=given.tenant), params=given.tenant.query, **options
    )


def change(action: str, **options: Any) -> Callable[[Given], Awaitable[Answer]]:
    """The operation on the integration."""
    return lambda given: given.tenant.change_integration(action, given.integration_id, **options)


def post(path: str, body: Callable[[Given], dict[str, Any]]) -> Callable[[Given], Awaitable[Answer]]:
    """The operation with its organisation in the body."""
    return lambda given: given.tenant.api.post(path, json=body(given))


# Every operation that changes something, by its id. A new one must be added here.
TOLD: dict[str, Told] = {
    "create_organization": Told(
        "organization.created", 201, post("/v1/organizations", lambda _: {"name": "Radio Südlicht"})
    ),
    "rename_organization": Told(
        "organization.updated",
        200,
        lambda given: given.tenant.api.call(
            "PATCH", f"/v1/organizations/{given.tenant.organization_id}", json={"name": "Radio Südlicht"}
        ),
    ),
    "create_project": Told(
        "project.created", 201, post("/v1/projects", lambda given: {**given.tenant.query, "name": "Evening show"})
    ),
    "rename_project": Told(
        "project.updated", 200, call("PATCH", "/v1/projects/{tenant.project_id}", json={"name": "Night show"})
    ),
    "change_member": Told(
        "member.role_changed", 200, call("PUT", f"/v1/members/{COLLEAGUE}", json={"role": "billing"})
    ),
    "remove_member": Told("member.removed", 204, call("DELETE", f"/v1/members/{COLLEAGUE}")),
    "create_invitation": Told(
        "invitation.created", 201, post("/v1/member-invitations", lambda given: given.tenant.invitation_body())
    ),
    "revoke_invitation": Told(
        "invitation.revoked", 200, call("POST", "/v1/member-invitations/{given.invitation_id}/revoke")
    ),
    "accept_invitation": Told(
        "invitation.accepted",
        200,
        lambda given: given.ada.post("/v1/member-invitations/accept", json={"token": given.token}),
        actor_id="ada",
    ),
    "create_api_key": Told("api_key.created", 201, post("/v1/api-keys", lambda given: given.tenant.key_body())),
    "revoke_api_key": Told("api_key.revoked", 200, call("POST", "/v1/api-keys/{given.api_key_id}/revoke")),
    "rotate_api_key_secret": Told(
        "api_key.secret_rotated", 200, call("POST", "/v1/api-keys/{given.api_key_id}/secret")
    ),
    "create_campaign": Told(
        "campaign.created", 201, post("/v1/campaigns", lambda given: given.tenant.campaign_body(name="Tomorrow"))
    ),
    "update_campaign": Told(
        "campaign.updated", 200, call("PATCH", "/v1/campaigns/{given.campaign_id}", json={"name": "Tomorrow"})
    ),
    "archive_campaign": Told("campaign.archived", 200, call("POST", "/v1/campaigns/{given.campaign_id}/archive")),
    "stop_campaign": Told("campaign.stopped", 200, call("POST", "/v1/campaigns/{given.campaign_id}/stop")),
    "create_integration": Told(
        "audience.integration_provisioning",
        201,
        post("/v1/audience/integrations", lambda given: given.tenant.integration_body()),
    ),
    "revoke_integration": Told("audience.integration_revocation", 200, change("revoke")),
    "rotate_integration_secret": Told("audience.integration_secret_rotation", 200, change("secret")),
    "change_integration_retention": Told(
        "audience.integration_retention_update", 200, change("retention", json={"retention_days": 7})
    ),
    "replace_integration_core_key": Told("audience.integration_core_key_update", 200, change("core-key")),
    "issue_code": Told("code.issued", 201, post("/v1/codes", lambda given: given.tenant.code_body())),
    "issue_codes": Told(
        "code.batch_issued", 201, post("/v1/codes/batch", lambda given: {**given.tenant.code_body(), "count": 2})
    ),
    "revoke_code": Told("code.revoked", 200, call("POST", "/v1/codes/{given.xr_id}/revoke")),
    "revoke_codes": Told(
        "code.batch_revoked",
        200,
        lambda given: given.tenant.api.post(
            "/v1/codes/revoke-batch",
            params=given.tenant.query,
            json={"project_id": given.tenant.project_id, "xr_ids": [given.xr_id]},
        ),
    ),
}


def test_every_operation_that_changes_an_organisation_is_held_to_the_log() -> None:
    """What the operator sets for the whole platform happens in no organisation, so it is in no organisation's log."""
    changing = {
        operation.id
        for operation in list_operations()
        if operation.method.upper() not in SAFE_METHODS and not operation.access["platform"]
    }
    assert changing - READING == set(TOLD)


def test_every_action_is_told_by_something() -> None:
    """An action that nothing tells would be a promise of the contract that is not kept."""
    assert {told.action for told in TOLD.values()} | OF_COMMANDS == set(get_args(AuditAction))


@pytest.fixture
async def given(api: Api, people: People, rival: Rival) -> Given:
    tenant = await make_tenant(api)
    campaign, key = await tenant.make_campaign(), await tenant.make_key()
    code = await tenant.make_code(campaign_id=campaign["id"])
    integration = await tenant.make_integration()
    await tenant.make_member(rival, COLLEAGUE, "member")
    invitation = await tenant.make_invitation()
    ada = people.person("ada", email="ada@example.org")
    return Given(
        tenant, code["xr_id"], key["id"], invitation["id"], campaign["id"], integration["id"], invitation["secret"], ada
    )


async def entries(rival: Rival) -> dict[str, tuple[str, str, str, str]]:
    """Every entry of every organisation: what it tells, by its id."""
    rows = await rival.rows("SELECT id, action, actor_id, outcome, metadata FROM audit_entries")
    return {identity: (action, actor_id, outcome, metadata) for identity, action, actor_id, outcome, metadata in rows}


async def everything(rival: Rival) -> dict[str, list[Any]]:
    """Every row of every table, but what the sealing of earlier entries goes on changing."""
    tables = await rival.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
    sealing = {"audit_unsealed", "audit_seals", "audit_heads"}
    return {
        table: sorted(await rival.rows(f'SELECT t::text FROM "{table}" t'))
        for (table,) in tables
        if table not in sealing
    }


def _secrets(answer: Answer) -> set[str]:
    told = answer.json if answer.body else {}
    return {told[name] for name in ("secret", "hmac_secret") if name in told}


@pytest.mark.parametrize("operation", TOLD)
async def test_an_operation_writes_exactly_one_entry(given: Given, rival: Rival, operation: str) -> None:
    told, before = TOLD[operation], await entries(rival)
    answer = await told.act(given)
    assert answer.status == told.status, answer.body
    after = await entries(rival)
    (new,) = after.keys() - before.keys()
    action, actor_id, outcome, metadata = after[new]
    assert (action, actor_id, outcome) == (told.action, told.actor_id, "completed")
    assert {identity: after[identity] for identity in before} == before
    assert not any(prefix in metadata for prefix in SECRET_PREFIXES)
    secrets = {given.token, *_secrets(answer)}
    assert not any(secret in str(after) for secret in secrets)


@pytest.mark.parametrize("operation", TOLD)
async def test_a_change_whose_entry_was_not_written_has_not_happened(
    given: Given, rival: Rival, operation: str
) -> None:
    """The process dies, or loses its database, exactly when it writes the entry."""
    before = await everything(rival)
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        acting = await rival.while_waiting(TOLD[operation].act(given))
        assert await rival.end_whoever_waits() == 1
        answer = await asyncio.wait_for(acting, 60)
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await everything(rival) == before


@pytest.mark.parametrize("operation", TOLD)
async def test_an_operation_that_is_refused_tells_nothing(given: Given, rival: Rival, operation: str) -> None:
    await rival.run("UPDATE members SET role = 'billing' WHERE subject_id = 'operator'")
    await rival.run("UPDATE invitations SET revoked_at = created_at")
    before = await entries(rival)
    answer = await TOLD[operation].act(given)
    if operation != "create_organization":  # Which everybody may.
        assert answer.status in {400, 403}, answer.body
        assert await entries(rival) == before
