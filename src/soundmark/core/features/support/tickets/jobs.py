"""The jobs that bring a ticket or a reply to the support desk if its request could not."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, Literal, TypeAlias

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import first_attempt_at, next_attempt_at
from soundmark.core.features.support.tickets.completion import complete
from soundmark.core.features.support.tickets.replies import COMPLETE_REPLY, complete_reply
from soundmark.core.features.support.tickets.service import COMPLETE
from soundmark.core.problems import OrganizationNotFound
from soundmark.core.store.support import ticket_replies, tickets
from soundmark.kit.postgres.job_queue import Later
from soundmark.kit.postgres.jobs import add_deferred

_Kind: TypeAlias = Literal["ticket", "reply"]
# How an attempt ended, in the log: it is there, it is tried again, it is given up.
_EVENTS: Final[dict[_Kind, tuple[str, str, str]]] = {
    "ticket": ("ticket_completed", "ticket_delayed", "ticket_given_up"),
    "reply": ("reply_completed", "reply_delayed", "reply_given_up"),
}
_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` bring tickets and replies to the desk."""
    add_deferred(app, ctx, COMPLETE, bring_to_desk)
    add_deferred(app, ctx, COMPLETE_REPLY, bring_reply_to_desk)


async def bring_to_desk(ctx: Context, *, organization_id: str, ticket_id: str) -> None:
    """Bring a ticket to the desk, once, or give up three days after it was made.

    A ticket that was given up keeps its sealed message: the same request still completes it. Safe to run late,
    repeatedly, in any order and concurrently.

    Raises: Later, with the time at which to run again; DatabaseUnavailable.
    Source: contract, section 7, "Support".
    """
    async with ctx.db.snapshot(tenant=organization_id) as tx:
        ticket = await tickets.find(tx, organization_id, ticket_id)
    if ticket is None or ticket.is_at_desk():
        return
    await _attempt(ctx, "ticket", ticket_id, ticket.created_at, lambda: complete(ctx, organization_id, ticket_id))


async def bring_reply_to_desk(ctx: Context, *, organization_id: str, reply_id: str) -> None:
    """Bring a reply to the desk like a ticket. It waits as long as the desk does not have its ticket.

    Raises: Later, with the time at which to run again; DatabaseUnavailable.
    """
    async with ctx.db.snapshot(tenant=organization_id) as tx:
        reply = await ticket_replies.find(tx, organization_id, reply_id)
    if reply is None or reply.is_at_desk():
        return
    await _attempt(ctx, "reply", reply_id, reply.created_at, lambda: complete_reply(ctx, organization_id, reply_id))


async def _attempt(
    ctx: Context,
    kind: _Kind,
    row_id: str,
    created_at: datetime,
    bring: Callable[[], Awaitable[object]],
) -> None:
    """Make one attempt, and log how it ended. Raises: Later."""
    if ctx.clock.now() < first_attempt_at(created_at):
        raise Later(first_attempt_at(created_at))
    log, (completed, delayed, given_up) = _log.bind(**{f"{kind}_id": row_id}), _EVENTS[kind]
    try:
        await bring()
    except OrganizationNotFound:
        return
    except Exception as error:  # noqa: BLE001 - such as a message that cannot be unsealed
        reason = type(error).__name__
    else:
        log.info(completed)
        return
    again_at = next_attempt_at(created_at, ctx.clock.now())
    if again_at is None:
        log.error(given_up, reason=reason)
        return
    log.warning(delayed, reason=reason)
    raise Later(again_at)
