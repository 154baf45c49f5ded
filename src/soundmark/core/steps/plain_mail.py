"""Mails of plain text from us to one person."""

from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime
from urllib.parse import urlsplit

from soundmark.core.domain.tenancy.mailbox import Mailbox
from soundmark.core.providers.smtp import Mail
from soundmark.core.providers.smtp_settings import SmtpServer


def write_plain_mail(
    mailbox: Mailbox, *, subject: str, text: str, identity: str, at: datetime, base_url: str, server: SmtpServer
) -> Mail:
    """Return a mail of `at`. `identity` and `at` make its `Message-ID`, by which mail programs know a duplicate."""
    recipient = mailbox.ascii_address or mailbox.address
    message = EmailMessage(policy=SMTP if recipient.isascii() else SMTPUTF8)
    message["From"] = Address(" ".join(server.from_name.split()), addr_spec=server.from_email)
    local, _, domain = recipient.rpartition("@")
    message["To"] = Address(username=local, domain=domain)
    message["Subject"] = subject
    message["Date"] = format_datetime(at)
    host = urlsplit(base_url).hostname or "localhost"
    host = f"[{host}]" if ":" in host else host
    message["Message-ID"] = f"<{identity}.{int(at.timestamp())}@{host}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: asks for no automatic replies.
    message.set_content(text, cte="quoted-printable")
    return Mail(sender=server.from_email, recipient=recipient, message=message.as_bytes())
