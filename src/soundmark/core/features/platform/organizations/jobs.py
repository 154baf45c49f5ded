"""Jobs that carry a suspension to Audience, and tell the owners by mail."""

from datetime import UTC, datetime
from typing import Final

import structlog
from procrastinate import App, JobContext

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.mailbox import read_mailbox
from soundmark.core.features.platform.organizations.owner_email import NOT_TOLD, make_notice
from soundmark.core.features.platform.organizations.service import CARRY, TELL
from soundmark.core.providers.smtp_settings import has_smtp_server
from soundmark.core.steps.cells import find_audience
from soundmark.core.steps.owner_notices import mail_notice
from soundmark.core.store.tenancy import members, suspensions
from soundmark.kit.postgres.jobs import UNTIL_DONE, UNTIL_DONE_SOON, add_deferred

MAIL: Final = "mail_owner_of_suspension"
_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` carry suspensions, and tell owners."""
    add_deferred(app, ctx, CARRY, carry_suspension, retry=UNTIL_DONE_SOON)
    add_deferred(app, ctx, TELL, tell_owners)

    @app.task(name=MAIL, retry=UNTIL_DONE, pass_context=True)
    async def mail(context: JobContext, organization_id: str, subject_id: str, change: str, at_s: str) -> None:
        await mail_owner(
            ctx,
            organization_id=organization_id,
            subject_id=subject_id,
            change=change,
            at=datetime.fromtimestamp(int(at_s), UTC),
            earlier_attempts=context.job.attempts,
        )


async def carry_suspension(ctx: Context, *, organization_id: str) -> None:
    """Send whether the organisation is suspended to its cell, which refuses its events.

    An organisation without a cell has no integration, and gets none while it is suspended. Safe to run late, repeatedly
    and in any order: the state is read now, and Audience keeps the latest revision.

    Raises: AudienceUnavailable, whereupon the job is retried; DatabaseUnavailable.
    Source: contract, section 13.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        suspension = await suspensions.find(tx, organization_id)
        audience = await find_audience(ctx, tx, organization_id)
    if suspension is None or audience is None:  # Perhaps the organisation was deleted with everything in it.
        return
    await audience.put_suspension(organization_id, suspension, request_id=CARRY)
    _log.info(
        "suspension_carried",
        organization_id=organization_id,
        is_suspended=suspension.is_suspended,
        revision=suspension.revision,
    )


async def tell_owners(ctx: Context, *, organization_id: str, change: str, at_s: str) -> None:
    """Queue a mail to each owner of the organisation. It does not count in the limits on mails in our name.

    Raises: DatabaseUnavailable.
    Source: contract, section 13.
    """
    if not await has_smtp_server(ctx.platform_settings):
        _log.warning(NOT_TOLD, organization_id=organization_id, reason="smtp_not_configured")
        return
    async with ctx.db.transaction(tenant=organization_id) as tx:
        for owner in await members.list_owners(tx, organization_id):
            if read_mailbox(owner.email) is None:
                _log.warning(NOT_TOLD, organization_id=organization_id, reason="malformed_address")
                continue
            await ctx.queue.defer(
                tx,
                MAIL,
                lock=f"suspension:{organization_id}:mail",
                organization_id=organization_id,
                subject_id=owner.subject_id,
                change=change,
                at_s=at_s,
            )


async def mail_owner(
    ctx: Context, *, organization_id: str, subject_id: str, change: str, at: datetime, earlier_attempts: int
) -> None:
    """Mail one owner, unless they own the organisation no more.

    Raises: Later; DatabaseUnavailable.
    """
    notice = make_notice(organization_id=organization_id, change=change, at=at, console_url=ctx.console_url)
    await mail_notice(
        ctx, notice, organization_id=organization_id, subject_id=subject_id, earlier_attempts=earlier_attempts
    )
