"""The job that brings a ticket to the support desk if its request could not."""

from typing import Final

import structlog
from procrastinate import App

from soundmark.core.context import Context
from soundmark.core.domain.support.ticket import first_attempt_at, next_attempt_at
from soundmark.core.features.support.tickets.completion import complete
from soundmark.core.features.support.tickets.service import COMPLETE
from soundmark.core.problems import OrganizationNotFound
from soundmark.core.store.support import tickets
from soundmark.kit.postgres.job_queue import Later
from soundmark.kit.postgres.jobs import add_deferred

_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` bring tickets to the desk."""
    add_deferred(app, ctx, COMPLETE, bring_to_desk)


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
    if ctx.clock.now() < first_attempt_at(ticket.created_at):
        raise Later(first_attempt_at(ticket.created_at))
    try:
        await complete(ctx, organization_id, ticket_id)
    except OrganizationNotFound:
        return
    except Exception as error:  # noqa: BLE001 - such as a message that cannot be unsealed
        reason = type(error).__name__
    else:
        _log.info("ticket_completed", ticket_id=ticket_id)
        return
    again_at = next_attempt_at(ticket.created_at, ctx.clock.now())
    if again_at is None:
        _log.error("ticket_given_up", ticket_id=ticket_id, reason=reason)
        return
    _log.warning("ticket_delayed", ticket_id=ticket_id, reason=reason)
    raise Later(again_at)
