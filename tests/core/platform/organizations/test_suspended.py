"""What a suspended organisation can do, and what it cannot."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.api.calls import ROWS
from support.api.core_client import Api
from support.api.world import OPERATIONS, World, send
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.suspension import restore, suspend
from support.tenancy.tenant import INTENT, Tenant

REFUSED = {
    "create_api_key",
    "create_campaign",
    "create_checkout",
    "create_integration",
    "create_invitation",
    "create_project",
    "issue_code",
    "issue_codes",
    "issue_decode_certificate",
    "make_offline_pack",
    "put_audience_contract",
}
# Decided by point B32 of the contract's details: nothing here adds to the organisation but what lets it settle its
# affairs, such as tickets and webhook endpoints. A new operation that changes something belongs in one of the two sets.
POSSIBLE = {
    "archive_campaign", "bundle_codes", "cancel_checkout", "change_integration_retention", "change_member",
    "create_organization", "create_ticket", "create_webhook_endpoint", "delete_project", "delete_webhook_endpoint",
    "open_portal", "put_abuse_report", "put_accounting_customer", "put_allowed_hosts", "put_offer",
    "put_payment_provider", "put_plan", "put_platform_configuration", "put_platform_secret", "receive_card_event",
    "receive_checkout_notification", "receive_desk_delivery", "receive_local_notification", "recover_code",
    "recover_codes", "remove_member", "rename_api_key", "rename_integration", "rename_organization", "rename_project",
    "replace_integration_core_key", "replay_webhook_events", "reply_to_ticket", "report_abuse", "retry_platform_job",
    "revoke_api_key", "revoke_code", "revoke_codes", "revoke_integration", "revoke_invitation", "rotate_webhook_secret",
    "rotate_api_key_secret", "rotate_integration_secret", "stop_campaign", "test_platform_system",
    "test_webhook_endpoint", "update_campaign", "update_webhook_endpoint",
}  # fmt: skip
# Suspends or restores it, has a test of its own, or is about another organisation than the caller's.
APART = {
    "accept_invitation", "delete_organization", "deliver_event", "resolve", "restore_organization",
    "suspend_organization",
}  # fmt: skip
ROOT: dict[str, Any] = {"realm_access": {"roles": ["svc_platform_admin"]}}
KEY = {"Idempotency-Key": "k" * 16}
SUSPENDED = (403, "organization_suspended")


@contextlib.asynccontextmanager
async def suspended(api: Api, organization_id: str) -> AsyncIterator[None]:
    """Keep the organisation suspended until the block ends."""
    assert (await suspend(api, organization_id)).status == 200
    yield
    assert (await restore(api, organization_id)).status == 200


async def test_of_all_operations_only_those_that_add_are_refused(world: World) -> None:
    """Tried as the owner, or as an administrator of the platform, who may call them otherwise."""
    changing = {name for name, operation in OPERATIONS.items() if operation.method != "GET"}
    assert changing - APART == REFUSED | POSSIBLE
    found = {}
    for operation_id in sorted(OPERATIONS.keys() - APART):
        operation = OPERATIONS[operation_id]
        call = await ROWS[operation_id].prepare(world)
        admin = world.people.person("root", **ROOT)
        caller = admin if operation.access["platform"] else world.people.person(world.caller_id)
        async with suspended(admin, world.tenant.organization_id):
            answer = await send(caller, operation, call)
        found[operation_id] = (answer.status, answer.code) if answer.status >= 400 else None
    assert {name: outcome for name, outcome in found.items() if outcome is not None} == dict.fromkeys(
        REFUSED, SUSPENDED
    )


async def test_its_tokens_answer_like_unknown_ones_until_it_is_restored(tenant: Tenant) -> None:
    """Expired ones too; revoked ones stay revoked."""
    api = tenant.api
    active, revoked = [await tenant.make_code() for _ in range(2)]
    expired = await tenant.make_code(lifetime_s=1)
    await tenant.revoke(revoked["xr_id"])
    api.clock.advance(seconds=2)
    tokens = [code["broadcast_token"] for code in (active, expired, revoked)]

    async def answers() -> list[tuple[int, bytes]]:
        same = {"headers": {"X-Request-Id": "same"}}
        return [((answer := await api.resolve(token, **same)).status, answer.body) for token in tokens]

    unknown = await api.resolve("brd_" + "A" * 16, headers={"X-Request-Id": "same"})
    before = [status for status, _ in await answers()]
    await suspend(api, tenant.organization_id)
    assert await answers() == [(404, unknown.body)] * 3
    await restore(api, tenant.organization_id)
    assert before == [status for status, _ in await answers()] == [200, 410, 404]


async def test_another_organisation_resolves_and_issues_as_ever(tenant: Tenant, people: People) -> None:
    other = await people.tenant_of("olga")
    code = await other.make_code()
    await suspend(tenant.api, tenant.organization_id)
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 200
    await other.make_code()


@pytest.mark.parametrize("path", ["/v1/codes", "/v1/codes/batch"])
async def test_issuance_is_refused_before_the_rules_of_the_body(tenant: Tenant, rival: Rival, path: str) -> None:
    """With the shortcut and without, and whatever is wrong with the body."""
    counted = {} if path == "/v1/codes" else {"count": 2}
    key = tenant.with_key(await tenant.make_key())
    await suspend(tenant.api, tenant.organization_id)
    bodies: list[dict[str, Any]] = [
        {},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"campaign_id": "cmp_" + "A" * 22},
        {"audience": {"enabled": True, "integration_id": "int_" + "A" * 22}},
        {"intent": {**INTENT, "resource": {"n": 2**60}}},
        {"intent": {}},
        {"unknown": 1},
    ]
    for body in bodies:
        for caller in (tenant, key):
            for headers in ({}, KEY, {"Content-Type": "application/json; charset=utf-8"}):
                answer = await caller.api.post(path, json=tenant.code_body(**counted, **body), headers=headers)
                assert (answer.status, answer.code) == SUSPENDED, (body, headers)
    assert await rival.rows("SELECT FROM codes") == []
    assert await rival.rows("SELECT FROM issuance_receipts") == []


async def test_a_body_without_anything_is_refused_for_the_suspension_everywhere(tenant: Tenant) -> None:
    await suspend(tenant.api, tenant.organization_id)
    for path, body in (
        ("/v1/projects", tenant.query),
        ("/v1/campaigns", tenant.query),
        ("/v1/api-keys", tenant.query),
        ("/v1/audience/integrations", tenant.query),
        ("/v1/audience/integrations", tenant.integration_body(retention_days=15)),
    ):
        answer = await tenant.api.post(path, json=body)
        assert (answer.status, answer.code) == SUSPENDED, (path, answer.body)


async def test_only_the_invited_person_learns_that_the_organisation_is_suspended(people: People) -> None:
    owner = await people.tenant_of("olga")
    invited = people.person("ivan")
    email = (await invited.get("/v1/caller")).json["email"]
    token = (await owner.make_invitation(email=email, role="member"))["secret"]
    await suspend(people.person("root", **ROOT), owner.organization_id)
    for subject, expected in (("ivan", "organization_suspended"), ("mallory", "invitation_invalid")):
        answer = await people.person(subject).post("/v1/member-invitations/accept", json={"token": token})
        assert answer.code == expected


async def test_strangers_and_weak_roles_learn_nothing_of_a_suspension(
    people: People, tenant: Tenant, rival: Rival
) -> None:
    owned = await people.tenant_of("olga")
    weak = await people.member(owned, rival, "mia", "member")
    await suspend(tenant.api, owned.organization_id)
    stranger = people.person("strange")
    assert (await stranger.post("/v1/codes", json=owned.code_body())).code == "organization_not_found"
    assert (await weak.api.post("/v1/codes", json=owned.code_body())).code == "forbidden"
    assert (await stranger.other(token=None).post("/v1/codes", json=owned.code_body())).code == "unauthenticated"


async def test_a_deletion_under_way_is_named_first(tenant: Tenant, rival: Rival) -> None:
    await suspend(tenant.api, tenant.organization_id)
    await rival.run("UPDATE projects SET deletion_requested_at = now()")
    issuing = await tenant.api.post("/v1/codes", json=tenant.code_body())
    assert (issuing.status, issuing.code) == (409, "resource_deletion_in_progress")
    campaign = await tenant.api.post("/v1/campaigns", json=tenant.campaign_body())
    assert (campaign.status, campaign.code) == (409, "resource_deletion_in_progress")
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")
    project = await tenant.api.post("/v1/projects", json={**tenant.query, "name": "More"})
    assert (project.status, project.code) == (409, "resource_deletion_in_progress")


async def test_a_dry_run_says_that_nothing_would_be_issued(tenant: Tenant) -> None:
    await suspend(tenant.api, tenant.organization_id)
    verdict = {"would_issue": False, "code": "organization_suspended", "quota_remaining": 100}
    unreadable = {**INTENT, "resource": {"n": 2**60}}
    for body in (tenant.code_body(), tenant.code_body(intent=unreadable), tenant.code_body(campaign_id="cmp_x")):
        answer = await tenant.api.post("/v1/codes", json=body, params={"dry_run": "true"})
        assert (answer.status, answer.json) == (200, verdict)


async def test_replays_and_recoveries_answer_what_they_did(tenant: Tenant) -> None:
    body = tenant.code_body()
    first = await tenant.api.post("/v1/codes", json=body, headers=KEY)
    batch = await tenant.api.post("/v1/codes/batch", json=body | {"count": 2}, headers={"Idempotency-Key": "b" * 16})
    await suspend(tenant.api, tenant.organization_id)
    replayed = await tenant.api.post("/v1/codes", json=body, headers=KEY)
    recovered = await tenant.api.post("/v1/codes/recover", json=body, headers=KEY)
    again = await tenant.api.post("/v1/codes/batch", json=body | {"count": 2}, headers={"Idempotency-Key": "b" * 16})
    assert (replayed.status, recovered.status, again.status) == (201, 200, 201)
    assert first.body == replayed.body == recovered.body
    assert batch.body == again.body
    other = await tenant.api.post("/v1/codes", json=tenant.code_body(issuer="Other"), headers=KEY)
    assert (other.status, other.code) == (409, "idempotency_conflict")


async def test_a_refusal_is_kept_under_no_key(tenant: Tenant) -> None:
    body = tenant.code_body()
    await suspend(tenant.api, tenant.organization_id)
    assert (await tenant.api.post("/v1/codes", json=body, headers=KEY)).code == "organization_suspended"
    await restore(tenant.api, tenant.organization_id)
    assert (await tenant.api.post("/v1/codes", json=body, headers=KEY)).status == 201
