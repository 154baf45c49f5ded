"""Sending a mail to one person through a mail server."""

import contextlib
import ssl
from asyncio import timeout
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import aiosmtplib

from soundmark.core.providers.smtp_settings import SmtpServer
from soundmark.kit.http.tls import share_tls_context
from soundmark.kit.open_transaction import assert_no_transaction
from soundmark.kit.text.validation import is_loopback_host

_COMMAND_TIMEOUT_S: Final = 20.0
_QUIT_TIMEOUT_S: Final = 2.0
_FINAL: Final = range(500, 600)  # RFC 5321, section 4.2.1: permanent negative completion.


@dataclass(frozen=True, slots=True)
class Mail:
    """A message that is ready to send. Addresses that are not ASCII require a server with SMTPUTF8."""

    sender: str
    recipient: str
    message: bytes = field(repr=False)


class MailRefused(Exception):
    """The server refused the mail permanently, with a 5xx reply."""

    def __init__(self, code: int) -> None:
        super().__init__(f"refused with {code}")
        self.code: Final = code


class MailNotSent(Exception):
    """The server did not accept the mail, or its reply was lost; a later attempt may succeed.

    `reason` is the code of a reply or the name of an error. It leaves out the server's text, which may hold an address.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: Final = reason


async def send(server: SmtpServer, mail: Mail, *, deadline: timedelta, extra_ca_file: Path | None = None) -> None:
    """Hand the mail to the server.

    The connection uses TLS from the start if that is configured. Otherwise it uses STARTTLS, which a server on another
    machine must offer. Certificates are verified, except that of a server on the same machine.

    Raises: MailRefused; MailNotSent, also if the connection was lost after the mail was sent.
    Source: RFC 5321, RFC 3207, RFC 6531.
    """
    assert_no_transaction("mail")
    try:
        async with timeout(deadline.total_seconds()):
            await _send(_client(server, extra_ca_file), server, mail)
    except aiosmtplib.SMTPRecipientsRefused as refused:
        raise _reply_error(refused.recipients[0].code) from None
    except aiosmtplib.SMTPResponseException as refused:
        raise _reply_error(refused.code) from None
    except (aiosmtplib.SMTPException, OSError) as error:  # A timeout is an OSError.
        raise MailNotSent(type(error).__name__) from None


async def _send(client: aiosmtplib.SMTP, server: SmtpServer, mail: Mail) -> None:
    try:
        await client.connect()
        if server.username is not None:
            password = "" if server.password is None else server.password.reveal()
            await client.login(server.username.reveal(), password)
        is_ascii = mail.sender.isascii() and mail.recipient.isascii()
        options = [] if is_ascii else ["SMTPUTF8", "BODY=8BITMIME"]
        await client.sendmail(mail.sender, [mail.recipient], mail.message, mail_options=options)
        # The mail is accepted; a failing QUIT does not change that.
        with contextlib.suppress(aiosmtplib.SMTPException, OSError):
            await client.quit(timeout=_QUIT_TIMEOUT_S)
    finally:
        client.close()


def _client(server: SmtpServer, extra_ca_file: Path | None) -> aiosmtplib.SMTP:
    is_local = is_loopback_host(server.host)
    context = _make_unverifying_context() if is_local else share_tls_context(extra_ca_file)
    if server.is_implicit_tls:
        start_tls: bool | None = False
    else:
        start_tls = None if is_local else True  # None: only if the server offers it.
    return aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        use_tls=server.is_implicit_tls,
        start_tls=start_tls,
        tls_context=context,
        timeout=_COMMAND_TIMEOUT_S,
    )


def _make_unverifying_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _reply_error(code: int) -> MailRefused | MailNotSent:
    return MailRefused(code) if code in _FINAL else MailNotSent(str(code))
