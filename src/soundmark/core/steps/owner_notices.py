"""Mails in which we tell the owners of an organisation what happened to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime
from typing import Final
from urllib.parse import urlsplit

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.invitation import ATTEMPTS_MAX, SENDING_MAX, pause_after
from soundmark.core.domain.tenancy.mailbox import Mailbox, read_mailbox
from soundmark.core.providers.smtp import Mail, MailNotSent, MailRefused, send
from soundmark.core.providers.smtp_settings import SmtpServer, find_smtp_server
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
    recipient = mailbox.ascii_address or mailbox.address
    message = EmailMessage(policy=SMTP if recipient.isascii() else SMTPUTF8)
    message["From"] = Address(" ".join(server.from_name.split()), addr_spec=server.from_email)
    local, _, domain = recipient.rpartition("@")
    message["To"] = Address(username=local, domain=domain)
    message["Subject"] = notice.subject
    message["Date"] = format_datetime(notice.at)
    host = urlsplit(base_url).hostname or "localhost"
    host = f"[{host}]" if ":" in host else host
    message["Message-ID"] = f"<{notice.identity}.{int(notice.at.timestamp())}@{host}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: asks for no automatic replies.
    message.set_content(notice.text, cte="quoted-printable")
    return Mail(sender=server.from_email, recipient=recipient, message=message.as_bytes())


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
