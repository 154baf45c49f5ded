"""The mail with which a mail server is tested."""

from datetime import datetime
from typing import Final

from soundmark.core.domain.tenancy.mailbox import Mailbox
from soundmark.core.providers.smtp import Mail
from soundmark.core.providers.smtp_settings import SmtpServer
from soundmark.core.steps.plain_mail import write_plain_mail

_SUBJECT: Final = "Test mail from Soundmark"
_TEXT: Final = """\
This mail shows that Soundmark can send mail through your mail server.

An administrator of the platform requested it from
{base_url}

There is nothing else to do.
"""


def write_test_mail(mailbox: Mailbox, *, base_url: str, server: SmtpServer, now: datetime) -> Mail:
    """Return the mail to one address."""
    return write_plain_mail(
        mailbox,
        subject=_SUBJECT,
        text=_TEXT.format(base_url=base_url),
        identity="system-test",
        at=now,
        base_url=base_url,
        server=server,
    )
