"""A real SMTP server on a loopback socket that keeps its mail and misbehaves on command."""

import asyncio
import contextlib
import datetime as dt
import email
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import default
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from support.api.core_client import Api

USERNAME, PASSWORD = "mailer", "swordfish-of-the-mail-server"


@dataclass(frozen=True)
class Received:
    """A mail that was accepted, or would have been."""

    sender: str
    recipient: str
    content: bytes
    had_tls: bool
    login: str | None

    @property
    def message(self) -> EmailMessage:
        parsed = email.message_from_bytes(self.content, policy=default)
        assert isinstance(parsed, EmailMessage)
        return parsed

    def part(self, kind: str) -> str:
        found = self.message.get_body((kind,))
        assert found is not None, f"a {kind} part"
        text: str = found.get_content()
        return text

    @property
    def token(self) -> str:
        """Return the invitation's secret, as a person finds it in the text."""
        (token,) = [line for line in self.part("plain").splitlines() if line.startswith("xin_")]
        return token


@dataclass
class MailServer:
    """What the server answers; a test changes it while the server runs."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    connections_count: int = 0
    greetings: list[str] = field(default_factory=list)  # The names of every EHLO.
    is_strict: bool = False  # It wants a full name in EHLO, and refuses the recipient otherwise, as Postfix may.
    # Replies in place of a friendly one, by command: EHLO, HELO, MAIL, RCPT, DATA.
    replies: dict[str, str] = field(default_factory=dict)
    on_data: Callable[[Any], None] | None = None  # Called with the protocol when a mail is complete.
    is_hanging: bool = False  # At DATA, after the mail is complete.

    async def until_received(self, count: int = 1) -> None:
        """Wait for this many complete mails; a server that hangs has not answered the last one."""
        async with asyncio.timeout(60):
            while len(self.received) < count:  # noqa: ASYNC110 - aiosmtpd knows no events
                await asyncio.sleep(0.01)

    async def handle_EHLO(  # noqa: N802 - their name - aiosmtpd calls it
        self, _server: Any, session: Session, _envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.greetings.append(hostname)
        session.host_name = hostname
        return [self.replies["EHLO"]] if "EHLO" in self.replies else responses

    async def handle_HELO(self, _server: Any, session: Session, _envelope: Envelope, hostname: str) -> str:  # noqa: N802 - their name
        session.host_name = hostname
        return self.replies.get("HELO", "250 mail.test")

    async def handle_MAIL(  # noqa: N802 - their name - aiosmtpd calls it
        self, _server: Any, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return self.replies.get("MAIL", "250 OK")

    async def handle_RCPT(  # noqa: N802 - their name - aiosmtpd calls it
        self, _server: Any, session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        name = session.host_name or ""
        if self.is_strict and "." not in name and not name.startswith("["):
            return f"504 5.5.2 <{name}>: Helo command rejected: need fully-qualified hostname"
        if "RCPT" not in self.replies:
            envelope.rcpt_tos.append(address)
        return self.replies.get("RCPT", "250 OK")

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802 - their name
        assert envelope.mail_from is not None
        assert isinstance(envelope.content, bytes)
        had_tls = server.transport.get_extra_info("ssl_object") is not None
        login = session.auth_data.login.decode() if session.auth_data else None
        mail = Received(envelope.mail_from, envelope.rcpt_tos[0], envelope.content, had_tls, login)
        self.received.append(mail)
        if self.on_data is not None:
            self.on_data(server)
        if self.is_hanging:
            await asyncio.sleep(3600)
        return self.replies.get("DATA", "250 OK")

    async def handle_exception(self, error: Exception) -> str:
        return f"451 {type(error).__name__}"


def _authenticator(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
    assert isinstance(data, LoginPassword)
    is_right = data == LoginPassword(USERNAME.encode(), PASSWORD.encode())
    # A refusal that is `handled` would send nothing, and the client would hang.
    return AuthResult(success=is_right, handled=False, auth_data=data)


@contextlib.asynccontextmanager
async def running_mail_server(
    *,
    certificate: "Certificate | None" = None,
    is_implicit_tls: bool = False,
    needs_login: bool = False,
    knows_utf8: bool = True,
    host: str = "127.0.0.1",
) -> AsyncIterator[MailServer]:
    """Run a mail server; with a certificate it speaks TLS, after STARTTLS unless it does from the start."""
    handler = MailServer()
    loop = asyncio.get_running_loop()
    context = certificate.server_context() if certificate else None
    transports: list[Any] = []

    def connected() -> SMTP:
        handler.connections_count += 1
        protocol = SMTP(
            handler,
            enable_SMTPUTF8=knows_utf8,
            hostname="mail.test",
            tls_context=None if is_implicit_tls else context,
            require_starttls=context is not None and not is_implicit_tls,
            auth_required=needs_login,
            auth_require_tls=needs_login and not is_implicit_tls,
            authenticator=_authenticator,
            loop=loop,
        )
        transports.append(protocol)
        return protocol

    server = await loop.create_server(connected, host, 0, ssl=context if is_implicit_tls else None)
    handler.port = server.sockets[0].getsockname()[1]
    try:
        yield handler
    finally:
        server.close()
        for protocol in transports:
            if protocol.transport is not None:
                protocol.transport.abort()
        # What waits in a hook is let go with its connection.
        await asyncio.sleep(0)


@dataclass(frozen=True)
class Certificate:
    """A self-signed certificate and its key, in two files."""

    certificate_file: Path
    key_file: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate_file, self.key_file)
        return context


def make_certificate(folder: Path, *addresses: str) -> Certificate:
    """Make a certificate for these IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail.test")])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)) for address in addresses])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Certificate(folder / "mail.pem", folder / "mail.key")
    made.certificate_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    made.key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return made


async def configure_mail(api: Api, server: MailServer) -> None:
    """Configure this mail server as a platform administrator."""
    values = {
        "smtp_host": "127.0.0.1",
        "smtp_port": server.port,
        "smtp_secure": False,
        "smtp_from_email": "codes@example.org",
        "smtp_from_name": "Radio Ä, Codes",
    }
    for name, value in values.items():
        answer = await api.call("PUT", f"/v1/platform/settings/configuration/{name}", json={"value": value})
        assert answer.status == 200, answer.body
