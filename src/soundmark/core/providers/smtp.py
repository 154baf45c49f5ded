"""Sending a mail to one person through a mail server."""

import contextlib
import re
import ssl
from asyncio import timeout
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import aiosmtplib

from soundmark.core.providers.smtp_settings import SmtpServer
from soundmark.kit.http.outbound.tls import share_tls_context
from soundmark.kit.open_transaction import assert_no_transaction
from soundmark.kit.text.refused_hosts import is_refused_address
from soundmark.kit.text.validation import check_mail_name, is_loopback_host, write_address_literal

_COMMAND_TIMEOUT_S: Final = 20.0
_QUIT_TIMEOUT_S: Final = 2.0
_FINAL: Final = range(500, 600)  # RFC 5321, section 4.2.1: permanent negative completion.
# Replies that are about the session, at whatever command. RFC 5321, section 4.2.2: a command is unknown or not
# implemented, out of order, or has such a parameter (which strict servers also say of our greeting, at RCPT). RFC 4954,
# sections 4 and 6: a login is required, or was not good enough.
_OF_THE_SESSION: Final = frozenset({500, 502, 503, 504, 530, 534, 535, 538})
# What a server may add at RCPT. RFC 3463, sections 3.6 and 3.8: it dislikes how we speak or who we are, such as our
# greeting or our IP address, which says nothing about the recipient. An operator may put it right.
_IS_ABOUT_US: Final = re.compile(r"5\.[57]\.[0-9]{1,3}\b")


@dataclass(frozen=True, slots=True)
class Mail:
    """A message that is ready to send. Addresses that are not ASCII require a server with SMTPUTF8."""

    sender: str
    recipient: str
    message: bytes = field(repr=False)


class MailRefused(Exception):
    """The server refused the recipient or the message permanently; every later attempt would fail too.

    `reason` is the code of a reply or one of our own words. It leaves out the server's text, which may hold an address.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"refused: {reason}")
        self.reason: Final = reason


class MailNotSent(Exception):
    """The server did not accept the mail, or its reply was lost; a later attempt may succeed.

    `reason` is the code of a reply or the name of an error. It leaves out the server's text, which may hold an address.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: Final = reason


def find_greeting(base_url: str) -> str | None:
    """Return the name by which mail servers are greeted if no other is configured; None for an address literal.

    It is the host of `base_url`, unless it is a name that nobody else knows, such as that of a container.

    Source: RFC 5321, sections 4.1.1.1 and 4.1.4.
    """
    host = (urlsplit(base_url).hostname or "").removesuffix(".")
    try:
        name = check_mail_name(host)
    except ValueError:
        return None
    return name if "." in name or ":" in name else None


async def send(
    server: SmtpServer, mail: Mail, *, greeting: str | None, deadline: timedelta, extra_ca_file: Path | None = None
) -> None:
    """Hand the mail to the server, which is greeted as `greeting`, or if None as the address of the connection.

    The connection uses TLS from the start if that is configured. Otherwise it uses STARTTLS, which a server on another
    machine must offer. Certificates are verified, except that of a server on the same machine.

    Raises: MailRefused; MailNotSent, also if the connection was lost after the mail was sent.
    Source: RFC 5321, RFC 3207, RFC 6531.
    """
    assert_no_transaction("mail")
    try:
        async with timeout(deadline.total_seconds()):
            await _send(_client(server, extra_ca_file), server, mail, greeting)
    except aiosmtplib.SMTPRecipientsRefused as refused:
        reply = refused.recipients[0]
        is_about_us = _IS_ABOUT_US.match(reply.message) is not None
        raise MailNotSent(str(reply.code)) if is_about_us else _judge_reply(reply.code) from None
    except aiosmtplib.SMTPDataError as refused:
        raise _judge_reply(refused.code) from None
    except aiosmtplib.SMTPResponseException as refused:
        # Before the recipient was named, every reply is about the session: the greeting, TLS, the login, the sender.
        raise MailNotSent(str(refused.code)) from None
    except (aiosmtplib.SMTPException, OSError) as error:  # A timeout is an OSError.
        raise MailNotSent(type(error).__name__) from None


async def _send(client: aiosmtplib.SMTP, server: SmtpServer, mail: Mail, greeting: str | None) -> None:
    try:
        await client.connect()
        if is_refused_address(ip_address(client.get_transport_info("peername")[0])):
            raise MailNotSent("address_refused")
        client.local_hostname = greeting or write_address_literal(client.get_transport_info("sockname")[0])
        if not server.is_implicit_tls:
            await _start_tls(client, is_required=not is_loopback_host(server.host))
        if server.username is not None:
            password = "" if server.password is None else server.password.reveal()
            await client.login(server.username.reveal(), password)
        await _hand_over(client, mail)
        # The mail is accepted; a failing QUIT does not change that.
        with contextlib.suppress(aiosmtplib.SMTPException, OSError):
            await client.quit(timeout=_QUIT_TIMEOUT_S)
    finally:
        client.close()


async def _start_tls(client: aiosmtplib.SMTP, *, is_required: bool) -> None:
    if not is_required:
        try:
            await client.ehlo()
        except aiosmtplib.SMTPHeloError:
            return  # It knows no extensions. The library says HELO before the mail.
    if is_required or client.supports_extension("starttls"):
        await client.starttls()


async def _hand_over(client: aiosmtplib.SMTP, mail: Mail) -> None:
    is_ascii = mail.sender.isascii() and mail.recipient.isascii()
    options = [] if is_ascii else ["SMTPUTF8", "BODY=8BITMIME"]
    try:
        await client.sendmail(mail.sender, [mail.recipient], mail.message, mail_options=options)
    except aiosmtplib.SMTPNotSupported:
        # The server will not learn it before the next attempt.
        raise MailRefused("no_smtputf8") from None


def _client(server: SmtpServer, extra_ca_file: Path | None) -> aiosmtplib.SMTP:
    is_local = is_loopback_host(server.host)
    return aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        local_hostname="localhost",  # Until the connection says which address is ours; nothing is sent before.
        use_tls=server.is_implicit_tls,
        start_tls=False,  # We do it ourselves, after the name above is known.
        tls_context=_make_unverifying_context() if is_local else share_tls_context(extra_ca_file),
        timeout=_COMMAND_TIMEOUT_S,
    )


def _make_unverifying_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _judge_reply(code: int) -> MailRefused | MailNotSent:
    """Return the error for a reply to the recipient or the message."""
    is_final = code in _FINAL and code not in _OF_THE_SESSION
    return MailRefused(str(code)) if is_final else MailNotSent(str(code))
