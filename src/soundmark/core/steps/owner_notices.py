"""Mails in which we tell the owners of an organisation what happened to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.invitation import ATTEMPTS_MAX, SENDING_MAX, pause_after
from soundmark.core.domain.tenancy.mailbox import Mailbox, read_mailbox
from soundmark.core.providers.smtp import Mail, MailNotSent, MailRefused, send
from soundmark.core.providers.smtp_settings import SmtpServer, find_smtp_server
from soundmark.core.steps.plain_mail import write_plain_mail
from soundmark.core.store.tenancy import members
from soundmark.kit.postgres.job_queue import Later

_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Notice:
    """A mail to the owners. It contains nothing that somebody else wrote, such as a name or a URL.

    `identity` and `at` make the `Message-ID`, so that mail programs recognise a duplicate. `failure` is the event that
    is logged, with `about`, when an owner cannot be told.
    """

    subject: str
    text: str
    identity: str
    at: datetime
    failure: str
    about: Mapping[str, str]


def write_notice(notice: Notice, mailbox: Mailbox, *, base_url: str, server: SmtpServer) -> Mail:
    """Return the mail to one owner."""
    return write_plain_mail(
        mailbox,
        subject=notice.subject,
        text=notice.text,
        identity=notice.identity,
        at=notice.at,
        base_url=base_url,
        server=server,
    )


async def mail_notice(
    ctx: Context, notice: Notice, *, organization_id: str, subject_id: str, earlier_attempts: int
) -> None:
    """Mail one owner, unless they own the organisation no more. Failures are retried as those of invitations are.

    A worker that is killed after the mail was sent has the same mail sent again, with the same `Message-ID`.

    Raises: Later; DatabaseUnavailable.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        owners = await members.list_owners(tx, organization_id)
    mailbox = next((read_mailbox(owner.email) for owner in owners if owner.subject_id == subject_id), None)
    server = await find_smtp_server(ctx.platform_settings)
    if mailbox is None or server is None:
        return
    mail = write_notice(notice, mailbox, base_url=ctx.base_url, server=server)
    attempt = earlier_attempts + 1
    try:
        await send(server, mail, greeting=ctx.smtp_greeting, deadline=SENDING_MAX, extra_ca_file=ctx.extra_ca_file)
    except MailRefused as refused:
        _log.warning(notice.failure, reason=refused.reason, **notice.about)
    except MailNotSent as failed:
        _log.warning(notice.failure, reason=failed.reason, attempt=attempt, **notice.about)
        if attempt < ATTEMPTS_MAX:
            raise Later(ctx.clock.now() + pause_after(attempt)) from None
