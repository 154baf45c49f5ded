"""The mail server: one mail to one person."""

import contextlib
import ssl
from asyncio import timeout
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import Final

import aiosmtplib

from soundmark.core.configuration import Smtp
from soundmark.kit.postgres import assert_no_transaction

_COMMAND_TIMEOUT_S: Final = 20.0
_GOODBYE_TIMEOUT_S: Final = 2.0
_FINAL: Final = range(500, 600)  # RFC 5321, section 4.2.1: permanent negative completion.


@dataclass(frozen=True, slots=True)
class Mail:
    """A message, ready to be handed over. Addresses that are not ASCII need a server with SMTPUTF8."""

    sender: str
    recipient: str
    message: bytes = field(repr=False)


class MailRefused(Exception):  # noqa: N818 - named for what was answered
    """The server refused the mail for good, with a reply 5xx."""

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with {code}")
        self.code: Final = code


class MailNotSent(Exception):  # noqa: N818 - named for what happened
    """The mail was not taken, or nobody knows whether it was; a later attempt may succeed.

    `reason` is a reply's code or the name of what went wrong: what the server wrote may hold an address.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: Final = reason


async def send(server: Smtp, mail: Mail, *, deadline: timedelta) -> None:
    """The server has taken the mail.

    TLS from the start where it is configured; otherwise STARTTLS, which a server must offer unless it is on this
    machine. Certificates are verified, except of a server on this machine.

    Raises: MailRefused; MailNotSent, also where the connection was lost after the mail was handed over.
    Source: RFC 5321, RFC 3207, RFC 6531.
    """
    assert_no_transaction("mail")
    try:
        async with timeout(deadline.total_seconds()):
            await _converse(server, mail)
    except aiosmtplib.SMTPRecipientsRefused as refused:
        raise _judged(refused.recipients[0].code) from None
    except aiosmtplib.SMTPResponseException as refused:
        raise _judged(refused.code) from None
    except (aiosmtplib.SMTPException, OSError) as error:  # A timeout is an OSError.
        raise MailNotSent(type(error).__name__) from None


async def _converse(server: Smtp, mail: Mail) -> None:
    client = _client(server)
    try:
        await client.connect()
        if server.username is not None:
            password = "" if server.password is None else server.password.reveal()
            await client.login(server.username.reveal(), password)
        is_ascii = mail.sender.isascii() and mail.recipient.isascii()
        options = [] if is_ascii else ["SMTPUTF8", "BODY=8BITMIME"]
        await client.sendmail(mail.sender, [mail.recipient], mail.message, mail_options=options)
        # It is taken. A goodbye that fails changes nothing about that.
        with contextlib.suppress(aiosmtplib.SMTPException, OSError):
            await client.quit(timeout=_GOODBYE_TIMEOUT_S)
    finally:
        client.close()


def _client(server: Smtp) -> aiosmtplib.SMTP:
    is_here = _is_this_machine(server.host)
    context = ssl.create_default_context()
    if is_here:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if server.is_implicit_tls:
        start_tls: bool | None = False
    else:
        start_tls = None if is_here else True  # None: where it is offered.
    return aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        use_tls=server.is_implicit_tls,
        start_tls=start_tls,
        tls_context=context,
        timeout=_COMMAND_TIMEOUT_S,
    )


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _judged(code: int) -> MailRefused | MailNotSent:
    return MailRefused(code) if code in _FINAL else MailNotSent(str(code))
