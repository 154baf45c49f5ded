"""The mail of an invitation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, SMTPUTF8
from email.utils import format_datetime
from html import escape
from typing import Final
from urllib.parse import urlsplit

from soundmark.core.domain.tenancy.invitation import Delivery, InvitedRole
from soundmark.core.domain.tenancy.mailbox import read_mailbox
from soundmark.core.providers.smtp import Mail
from soundmark.core.providers.smtp_settings import SmtpServer
from soundmark.kit.crypto.secret import Secret

_AS: Final[Mapping[InvitedRole, str]] = {
    "admin": "an administrator",
    "member": "a member",
    "billing": "a billing member",
}

_SUBJECT: Final = "Invitation to an organisation on Soundmark"
_TEXT: Final = """\
You are invited to join "{organization}" on Soundmark as {role}.

To accept, open this link and sign in as {email}:

{accept_url}#token={token}

If the link does not work, open {accept_url}
and use this invitation token:

{token}

A program can accept it with
POST {base_url}/v1/member-invitations/accept
and the body {{"token": "<the token>"}}.

The invitation works once, for this e-mail address only, until {until}.
If you did not expect this invitation, ignore it: nobody can join without the token.
"""

_HTML: Final = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{subject}</title></head><body>
<p>You are invited to join "{organization}" on Soundmark as {role}.</p>
<p>To accept, open this link and sign in as {email}:</p>
<p><a href="{accept_url}#token={token}">{accept_url}#token={token}</a></p>
<p>If the link does not work, open <a href="{accept_url}">{accept_url}</a> and use this invitation token:</p>
<p><code>{token}</code></p>
<p>A program can accept it with <code>POST {base_url}/v1/member-invitations/accept</code> and the body
<code>{{"token": "&lt;the token&gt;"}}</code>.</p>
<p>The invitation works once, for this e-mail address only, until {until}.<br>
If you did not expect this invitation, ignore it: nobody can join without the token.</p>
</body></html>
"""


@dataclass(frozen=True, slots=True)
class _Words:
    subject: str
    organization: str
    role: str
    base_url: str
    accept_url: str
    email: str
    until: str
    token: str = field(repr=False)


def write_invitation_email(
    delivery: Delivery, token: Secret, *, base_url: str, console_url: str, server: SmtpServer
) -> Mail:
    """Return the mail of one invitation.

    Its link carries the token in the fragment, which browsers send to no server. The mail has the same bytes each time,
    so that mail programs recognise a duplicate. Its text and HTML parts say the same, and it loads nothing from
    elsewhere. The organisation's name is foreign text in a mail of ours: it appears in no header, and in the body only
    quoted and without a link.
    """
    mailbox = read_mailbox(delivery.email)
    assert mailbox is not None, "checked when the invitation was created"
    recipient = mailbox.ascii_address or mailbox.address
    organization = _remove_links(_one_line(delivery.organization_name))
    words = _Words(
        subject=_SUBJECT,
        organization=organization,
        role=_AS[delivery.role],
        base_url=base_url,
        accept_url=f"{console_url}/invitations/accept",
        email=mailbox.address,
        until=_day(delivery.expires_at),
        token=token.reveal(),
    )
    message = EmailMessage(policy=SMTP if recipient.isascii() else SMTPUTF8)
    message["From"] = Address(_one_line(server.from_name), addr_spec=server.from_email)
    local, _, domain = recipient.rpartition("@")
    message["To"] = Address(username=local, domain=domain)
    message["Subject"] = _SUBJECT
    # The date of the invitation, not of the attempt.
    message["Date"] = format_datetime(delivery.created_at)
    message["Message-ID"] = f"<{delivery.invitation_id}@{_id_host(base_url)}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: asks for no automatic replies.
    message.set_content(_TEXT.format(**_spell_out(words)), cte="quoted-printable")
    escaped = {name: escape(text) for name, text in _spell_out(words).items()}
    message.add_alternative(_HTML.format(**escaped), subtype="html", cte="quoted-printable")
    message.set_boundary(f"=={delivery.invitation_id}==")
    return Mail(sender=server.from_email, recipient=recipient, message=message.as_bytes())


def _spell_out(words: _Words) -> dict[str, str]:
    return {name: getattr(words, name) for name in _Words.__dataclass_fields__}


def _one_line(text: str) -> str:
    # A line break would end a header, and Unicode has more line breaks than a name's pattern forbids.
    return " ".join(text.split())


def _remove_links(text: str) -> str:
    """Return `text` without anything that would end its quotation or that mail programs would turn into a link."""
    return text.replace("://", ": //").replace('"', "'")


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _id_host(base_url: str) -> str:
    host = urlsplit(base_url).hostname or "localhost"
    return f"[{host}]" if ":" in host else host
