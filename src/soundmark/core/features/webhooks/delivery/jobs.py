"""Jobs that tell owners by mail that an endpoint of theirs was disabled because it was failing."""

from datetime import UTC, datetime
from typing import Final

import structlog
from procrastinate import App, JobContext

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.mailbox import read_mailbox
from soundmark.core.features.webhooks.delivery.owner_email import NOT_TOLD, make_notice
from soundmark.core.features.webhooks.delivery.storing import TELL
from soundmark.core.providers.smtp_settings import has_smtp_server
from soundmark.core.steps.mail_quota import take_mail
from soundmark.core.steps.owner_notices import mail_notice
from soundmark.core.store.tenancy import members
from soundmark.kit.postgres.jobs import UNTIL_DONE, add_deferred

MAIL: Final = "mail_owner_of_failing_endpoint"
_log: Final = structlog.get_logger()


def add_tasks(app: App, ctx: Context) -> None:
    """Make `app` tell owners of disabled endpoints."""
    add_deferred(app, ctx, TELL, tell_owners)

    @app.task(name=MAIL, retry=UNTIL_DONE, pass_context=True)
    async def mail(context: JobContext, organization_id: str, endpoint_id: str, subject_id: str, at_s: str) -> None:
        await mail_owner(
            ctx,
            organization_id=organization_id,
            endpoint_id=endpoint_id,
            subject_id=subject_id,
            at=datetime.fromtimestamp(int(at_s), UTC),
            earlier_attempts=context.job.attempts,
        )


async def tell_owners(ctx: Context, *, organization_id: str, endpoint_id: str) -> None:
    """Queue a mail to each owner of the organisation, within the limits on mails in our name.

    Raises: DatabaseUnavailable.
    Source: contract, section 9, "Delivery", and section 2, "Mail in our name".
    """
    if not await has_smtp_server(ctx.platform_settings):
        _log.warning(NOT_TOLD, endpoint_id=endpoint_id, reason="smtp_not_configured")
        return
    async with ctx.db.transaction(tenant=organization_id) as tx:
        now = ctx.clock.now()
        for owner in await members.list_owners(tx, organization_id):
            mailbox = read_mailbox(owner.email)
            if mailbox is None or not await take_mail(
                tx, ctx.sealer, organization_id=organization_id, mailbox=mailbox, now=now
            ):
                _log.warning(NOT_TOLD, endpoint_id=endpoint_id, reason="mail_limit")
                continue
            await ctx.queue.defer(
                tx,
                MAIL,
                lock=f"webhooks/{endpoint_id}",
                organization_id=organization_id,
                endpoint_id=endpoint_id,
                subject_id=owner.subject_id,
                at_s=str(int(now.timestamp())),
            )


async def mail_owner(
    ctx: Context, *, organization_id: str, endpoint_id: str, subject_id: str, at: datetime, earlier_attempts: int
) -> None:
    """Mail one owner, unless they own the organisation no more.

    Raises: Later; DatabaseUnavailable.
    """
    notice = make_notice(organization_id=organization_id, endpoint_id=endpoint_id, at=at, base_url=ctx.base_url)
    await mail_notice(
        ctx, notice, organization_id=organization_id, subject_id=subject_id, earlier_attempts=earlier_attempts
    )
