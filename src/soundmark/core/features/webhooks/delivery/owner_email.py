"""The mail that tells an owner about a disabled endpoint."""

from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime
from typing import Final
from urllib.parse import urlsplit

from soundmark.core.domain.tenancy.mailbox import Mailbox
from soundmark.core.providers.smtp import Mail
from soundmark.core.providers.smtp_settings import SmtpServer

_SUBJECT: Final = "A webhook endpoint of your organisation was disabled"
_TEXT: Final = """\
The webhook endpoint {endpoint_id}
of your organisation {organization_id}
has not accepted a message for five days, so Soundmark has disabled it.

When your server accepts messages again, enable the endpoint with

PATCH {base_url}/v1/webhook-endpoints/{endpoint_id}?organization_id={organization_id}
and the body {{"enabled": true}}.

Events are kept for 30 days. To send those that your server missed, request a replay.

You receive this e-mail because you own the organisation.
"""


def write_owner_email(
    mailbox: Mailbox, *, organization_id: str, endpoint_id: str, at: datetime, base_url: str, server: SmtpServer
) -> Mail:
    """Return the mail to one owner. It contains nothing that somebody else wrote, neither a name nor the URL.

    It has the same `Message-ID` each time, so that mail programs recognise a duplicate.
    """
    recipient = mailbox.ascii_address or mailbox.address
    message = EmailMessage(policy=SMTP if recipient.isascii() else SMTPUTF8)
    message["From"] = Address(" ".join(server.from_name.split()), addr_spec=server.from_email)
    local, _, domain = recipient.rpartition("@")
    message["To"] = Address(username=local, domain=domain)
    message["Subject"] = _SUBJECT
    message["Date"] = format_datetime(at)
    host = urlsplit(base_url).hostname or "localhost"
    message["Message-ID"] = f"<{endpoint_id}.{int(at.timestamp())}@{f'[{host}]' if ':' in host else host}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: asks for no automatic replies.
    text = _TEXT.format(endpoint_id=endpoint_id, organization_id=organization_id, base_url=base_url)
    message.set_content(text, cte="quoted-printable")
    return Mail(sender=server.from_email, recipient=recipient, message=message.as_bytes())
