"""Every change in an organisation is in its audit log, written in the transaction of the change."""

import asyncio
from typing import Any, get_args

from support.api.calls import CALLS, ROWS
from support.api.core_client import Answer
from support.api.world import OPERATIONS, World, send
from support.database.content import read_content
from support.database.rival import Rival
from support.processes.secret_leaks import find_leaks

from soundmark.core.domain.tenancy.audit import AuditAction

SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
# Written by an operator's command, which is not an operation of the API.
OF_COMMANDS = {"billing.entitlement_changed"}
# Written by administrators of the platform, in the log of an organisation that they are not in: tests/core/billing and
# tests/core/platform.
OF_PLATFORM = {
    "billing.accounting_customer_changed", "billing.audience_contract_changed", "organization.restored",
    "organization.suspended",
}  # fmt: skip
# A project's deletion writes two, that of an organisation one, which goes with it: tests/core/tenancy/closure.
LEAVING = {"delete_organization", "delete_project"}
OF_CLOSURES = {"organization.deletion_requested", "project.deleted", "project.deletion_requested"}
# Operations whose method is not safe, although they change nothing in an organisation: the request is too large for a
# URL, or the change is Audience's or the card provider's, or what was sent is sent again.
READING = {"bundle_codes", "deliver_event", "open_portal", "recover_code", "recover_codes", "replay_webhook_events"}
# Or a message is sent once, and nothing of it is kept.
READING |= {"test_webhook_endpoint"}
# Or receivers report a Code: the reports are the platform's.
READING |= {"report_abuse"}
# Their changes are entries of Soundmark itself: tests/core/billing/webhooks.
NOTIFYING = {"receive_card_event", "receive_checkout_notification", "receive_local_notification"}
# A status of the desk is announced to webhook endpoints: tests/core/support.
NOTIFYING |= {"receive_desk_delivery"}
# Operations that change nothing and are audited all the same: they hand out everything at once.
EXPORTING = {"export_organization", "export_project"}
SECRET_PREFIXES = ("xak_", "xin_", "xop_", "xhm_", "whsec_")


AUDITED = {name: row.audited for name, row in ROWS.items() if row.audited is not None}


def test_every_operation_that_changes_an_organisation_has_its_entry() -> None:
    """Platform settings belong to no organisation, so no organisation's log holds their changes."""
    changing = {
        operation.id
        for operation in OPERATIONS.values()
        if operation.method not in SAFE_METHODS and not operation.access["platform"]
    }
    assert (changing - READING - NOTIFYING - LEAVING) | EXPORTING == set(AUDITED)


def test_every_action_is_written_by_something() -> None:
    """The contract would promise an entry that is never written."""
    assert set(AUDITED.values()) | OF_COMMANDS | OF_PLATFORM | OF_CLOSURES == set(get_args(AuditAction))


async def list_entries(rival: Rival) -> dict[str, tuple[str, str, str, str]]:
    """Return the action, actor, outcome and metadata of every entry in every organisation, by its id."""
    rows = await rival.rows("SELECT id, action, actor_id, outcome, metadata FROM audit_entries")
    return {identity: (action, actor_id, outcome, metadata) for identity, action, actor_id, outcome, metadata in rows}


def secrets_in(*documents: Any) -> set[str]:
    """Return the secrets that a request or a response carries."""
    names = ("secret", "hmac_secret", "token")
    return {document[name] for document in documents if document for name in names if name in document}


def json_of(answer: Answer) -> Any:
    return answer.json if answer.body else None


async def test_an_operation_writes_exactly_one_entry(world: World) -> None:
    for operation_id, expected in AUDITED.items():
        call = await CALLS[operation_id](world)
        before = await list_entries(world.rival)
        answer = await send(world.tenant.api, OPERATIONS[operation_id], call)
        assert answer.status in {200, 201, 204}, (operation_id, answer.body)
        after = await list_entries(world.rival)
        (new,) = after.keys() - before.keys()
        action, actor_id, outcome, metadata = after[new]
        assert (action, actor_id, outcome) == (expected, "owner", "completed")
        assert {identity: after[identity] for identity in before} == before, operation_id
        assert not any(prefix in metadata for prefix in SECRET_PREFIXES), operation_id
        assert find_leaks(metadata) == set(), operation_id
        assert not any(secret in str(after) for secret in secrets_in(call.json, json_of(answer))), operation_id


async def test_a_change_without_its_entry_is_not_made(world: World) -> None:
    """The process dies, or loses its database, exactly while it writes the entry."""
    for operation_id in AUDITED:
        call = await CALLS[operation_id](world)
        before = await read_content(world.rival, with_jobs=True)
        async with world.rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
            sending = await world.rival.while_waiting(send(world.tenant.api, OPERATIONS[operation_id], call))
            assert await world.rival.kill_waiting_sessions() == 1
            answer = await asyncio.wait_for(sending, 60)
        assert (answer.status, answer.code) == (503, "database_unavailable"), operation_id
        assert await read_content(world.rival, with_jobs=True) == before, operation_id
