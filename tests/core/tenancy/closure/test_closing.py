"""While a closure is under way, nothing is added; everything else goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from support.api.calls import CALLS
from support.api.core_client import Answer
from support.api.world import OPERATIONS, World, send
from support.database.rival import Rival
from support.tenancy.closures import Subject, leave_operation_pending, organization_of, project_of
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.core.access.policy import POLICY, Action

# Contract, section 8: what would add to the tenant, in Core or in Audience.
ADDING: Final[frozenset[Action]] = frozenset(
    {
        *("project.create", "campaign.create", "code.issue", "api_key.create", "invitation.create"),
        *("invitation.accept", "audience.create", "audience.revoke", "audience.rotate_secret"),
        *("audience.change_retention", "audience.replace_core_key", "checkout.create", "ticket.create"),
        *("ticket.reply", "project.delete", "webhook_endpoint.create", "decode_certificate.issue"),
        "offline_pack.make",
    }
)
GOING_ON: Final[frozenset[Action]] = frozenset(
    {
        *("api_key.list", "api_key.rename", "api_key.revoke", "api_key.rotate", "audience.legacy_report"),
        *("audience.list", "audience.rename", "audience.report", "audit_log.read", "audit_log.verify"),
        *("campaign.archive", "campaign.list", "campaign.stop", "campaign.summarise", "campaign.update"),
        *("checkout.read", "code.list", "code.read", "code.recover", "code.render", "code.revoke"),
        *("code.revoke_batch", "invitation.list", "invitation.revoke", "member.list", "member.remove"),
        *("member.update", "organization.export", "organization.preflight", "organization.update", "portal.open"),
        *("project.change_hosts", "project.export", "project.list", "project.preflight", "project.read_hosts"),
        *("project.update", "subscription.list"),
        *("ticket.list", "ticket.read", "usage.read", "webhook_endpoint.change", "webhook_endpoint.read"),
    }
)
# Another organisation is created or listed; the deletion itself is repeated in test_killed_closure.py. What a
# platform administrator does about the organisation is in tests/core/billing. A checkout that could be given up keeps
# a closure from beginning.
OUTSIDE: Final[frozenset[Action]] = frozenset(
    {
        *("billing.administer", "caller.read", "checkout.cancel", "offer.list", "organization.create"),
        *("organization.delete", "organization.list", "platform.change", "platform.read", "release.read"),
    }
)
# A project's closure leaves the rest of its organisation alone.
OF_ORGANIZATION: Final = frozenset(
    {
        *("project.create", "invitation.create", "invitation.accept", "checkout.create", "ticket.create"),
        *("ticket.reply", "project.delete"),
    }
)

OPERATIONS_OF: Final = {
    action: [name for name, operation in OPERATIONS.items() if operation.access["action"] == action]
    for action in POLICY
}


def test_every_action_is_in_one_list() -> None:
    """An operation that is missing here has not been thought of."""
    assert sorted([*ADDING, *GOING_ON, *OUTSIDE]) == sorted(POLICY)


async def close(world: World, rival: Rival, subject: Subject) -> None:
    """Have the closure of a subject requested and kept from being completed."""
    await leave_operation_pending(rival, world.tenant)
    assert (await subject.delete()).code == "deletion_operations_pending"


async def call_while_closing(
    world: World, rival: Rival, actions: frozenset[Action], subject_of: Callable[[Tenant], Subject]
) -> dict[str, Answer]:
    """Call every operation of these actions, each prepared before the closure began."""
    names = sorted(name for action in actions for name in OPERATIONS_OF[action] if name != "accept_invitation")
    calls = {name: await CALLS[name](world) for name in names}
    await close(world, rival, subject_of(world.tenant))
    return {name: await send(world.tenant.api, OPERATIONS[name], call) for name, call in calls.items()}


@pytest.mark.parametrize(
    ("subject_of", "actions"),
    [(organization_of, ADDING), (project_of, ADDING - OF_ORGANIZATION)],
    ids=["whole", "project"],
)
async def test_what_adds_to_a_closing_tenant_is_refused(
    world: World, rival: Rival, subject_of: Callable[[Tenant], Subject], actions: frozenset[Action]
) -> None:
    answers = await call_while_closing(world, rival, actions, subject_of)
    assert {name: answer.code for name, answer in answers.items() if answer.status != 409} == {}
    assert {answer.code for answer in answers.values()} == {"resource_deletion_in_progress"}


async def test_everything_else_goes_on_in_a_closing_organisation(world: World, rival: Rival) -> None:
    answers = await call_while_closing(world, rival, GOING_ON, organization_of)
    assert {name: answer.body for name, answer in answers.items() if answer.status >= 300} == {}


async def test_a_closing_project_does_not_close_its_organisation(world: World, rival: Rival) -> None:
    added = frozenset[Action]({"project.create", "invitation.create"})
    answers = await call_while_closing(world, rival, added, project_of)
    assert {answer.status for answer in answers.values()} == {201}


async def test_only_the_invited_person_learns_that_the_organisation_closes(
    tenant: Tenant, people: People, rival: Rival
) -> None:
    """A stranger who found the token learns nothing."""
    invitation = await tenant.make_invitation(email="ada@example.org")
    await leave_operation_pending(rival, tenant)
    await organization_of(tenant).delete()
    body = {"token": invitation["secret"]}

    invited = await people.person("ada").post("/v1/member-invitations/accept", json=body)
    stranger = await people.person("eve").post("/v1/member-invitations/accept", json=body)

    assert (invited.code, stranger.code) == ("resource_deletion_in_progress", "invitation_invalid")


async def test_a_repeated_issuance_gets_its_answer(tenant: Tenant, rival: Rival) -> None:
    """It adds nothing."""
    headers, body = {"Idempotency-Key": "before-the-closure"}, tenant.code_body()
    first = await tenant.api.post("/v1/codes", json=body, headers=headers)
    await leave_operation_pending(rival, tenant)
    await organization_of(tenant).delete()

    again = await tenant.api.post("/v1/codes", json=body, headers=headers)

    assert (again.status, again.body) == (201, first.body)


@pytest.mark.parametrize("close_one", [organization_of, project_of])
async def test_a_dry_run_says_that_nothing_would_be_issued(
    tenant: Tenant, rival: Rival, close_one: Callable[[Tenant], Subject]
) -> None:
    await leave_operation_pending(rival, tenant)
    await close_one(tenant).delete()

    answer = await tenant.api.post("/v1/codes", params={"dry_run": "true"}, json=tenant.code_body())

    assert (answer.status, answer.json["would_issue"]) == (200, False)
    assert answer.json["code"] == "resource_deletion_in_progress"


Adding = Callable[[Tenant], Awaitable[Answer]]


async def add_code(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/codes", json=tenant.code_body())


async def add_campaign(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/campaigns", json=tenant.campaign_body())


async def add_key(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/api-keys", json=tenant.key_body())


async def add_integration(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/audience/integrations", json=tenant.integration_body())


async def add_invitation(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/member-invitations", json=tenant.invitation_body())


async def add_project(tenant: Tenant) -> Answer:
    return await tenant.api.post("/v1/projects", json={**tenant.query, "name": "Late show"})


IN_PROJECT: Final[list[Adding]] = [add_code, add_campaign, add_key, add_integration]
IN_ORGANIZATION: Final[list[Adding]] = [*IN_PROJECT, add_invitation, add_project]
MARKING_ORGANIZATION: Final = "UPDATE organizations SET deletion_requested_at = created_at"
MARKING_PROJECT: Final = "UPDATE projects SET deletion_requested_at = created_at"


@pytest.mark.parametrize(
    ("add", "marking"),
    [
        *((add, MARKING_ORGANIZATION) for add in IN_ORGANIZATION),
        *((add, MARKING_PROJECT) for add in IN_PROJECT),
    ],
)
async def test_what_waits_for_the_marker_is_refused(tenant: Tenant, rival: Rival, add: Adding, marking: str) -> None:
    """It began before the closure and acts after it, so it must see the marker."""
    async with rival.committing(marking):
        adding = await rival.while_waiting(add(tenant))

    assert (await adding).code == "resource_deletion_in_progress"


@pytest.mark.parametrize("add", [add_code, add_campaign, add_key, add_invitation])
async def test_the_marker_waits_for_what_is_being_added(tenant: Tenant, rival: Rival, add: Adding) -> None:
    """It is then deleted with the rest: nothing is orphaned."""
    async with rival.holding("LOCK TABLE audit_entries IN EXCLUSIVE MODE"):
        adding = await rival.while_waiting(add(tenant))
        deleting = asyncio.create_task(organization_of(tenant).delete())
        await rival.until_someone_waits(2)

    assert (await adding).status == 201
    assert (await deleting).status == 204
    for table in ("codes", "broadcasts", "campaigns", "api_keys", "api_key_digests", "invitations"):
        assert await rival.rows(f"SELECT count(*) FROM {table}") == [(0,)], table


async def require_purged(measuring: Rival, tenant: Tenant) -> None:
    """Require that Audience has deleted the one integration of an organisation, and counted it."""
    left = "SELECT count(*) FROM integrations WHERE organization_id = %s"
    assert await measuring.rows(left, tenant.organization_id) == [(0,)]
    assert await measuring.rows("SELECT integrations FROM purges") == [(1,)]


async def test_a_deletion_waits_for_an_integration_that_is_being_created(
    tenant: Tenant, rival: Rival, measuring: Rival
) -> None:
    """The marker waits until Core has written what it asks of Audience; that is pending until Audience has answered."""
    subject = organization_of(tenant)
    async with measuring.holding("LOCK TABLE integrations IN EXCLUSIVE MODE"):
        async with rival.holding("SELECT FROM projects FOR UPDATE"):
            adding = await rival.while_waiting(add_integration(tenant))
            deleting = asyncio.create_task(subject.delete())
            await rival.until_someone_waits(2)
        pending = await deleting
        assert (pending.status, pending.code) == (409, "deletion_operations_pending")

    assert (await adding).status == 201
    assert (await subject.delete()).status == 204
    await require_purged(measuring, tenant)


async def test_an_integration_that_is_created_before_the_marker_is_purged(
    tenant: Tenant, rival: Rival, measuring: Rival
) -> None:
    """The deletion was requested first, but the creation did not wait for it: the organisation has its cell."""
    await tenant.give_cell(rival)
    async with rival.holding("SELECT FROM organizations FOR SHARE"):
        deleting = await rival.while_waiting(organization_of(tenant).delete())
        assert (await add_integration(tenant)).status == 201

    assert (await deleting).status == 204
    await require_purged(measuring, tenant)
