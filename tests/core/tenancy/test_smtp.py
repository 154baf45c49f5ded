"""Handing a mail to a mail server: which TLS is used, and which replies are final."""

import asyncio
import contextlib
from datetime import timedelta

import pytest
from support.outside.mail_server import (
    PASSWORD,
    USERNAME,
    Certificate,
    MailServer,
    make_certificate,
    running_mail_server,
)

from soundmark.core.providers import smtp
from soundmark.core.providers.smtp import Mail, MailNotSent, MailRefused, find_greeting, send
from soundmark.core.providers.smtp_settings import SmtpServer
from soundmark.kit.crypto.secret import Secret

DEADLINE = timedelta(seconds=20)
GREETING = "soundmark.example.org"
MAIL = Mail("codes@example.org", "ada@example.org", b"Subject: hello\r\n\r\nHello\r\n")
UTF8_MAIL = Mail("codes@example.org", "ärger@example.org", "Subject: hellö\r\n\r\nHello\r\n".encode())
# A host name that leads to this machine, although its spelling does not show it.
ELSEWHERE = "0.0.0.0"  # noqa: S104 - connected to


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate file."""
    return make_certificate(tmp_path_factory.mktemp("mail"), ELSEWHERE, "127.0.0.1")


def at(
    server: MailServer, *, host: str = "127.0.0.1", is_implicit_tls: bool = False, login: tuple[str, str] | None = None
) -> SmtpServer:
    username, password = map(Secret, login) if login else (None, None)
    return SmtpServer(host, server.port, is_implicit_tls, "codes@example.org", "Soundmark", username, password)


async def test_the_mail_arrives_as_it_is() -> None:
    async with running_mail_server() as server:
        await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)
    (received,) = server.received
    assert (received.sender, received.recipient) == (MAIL.sender, MAIL.recipient)
    assert received.content == MAIL.message
    assert not received.had_tls


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost"])
async def test_this_machine_gets_tls_if_it_offers_it(certificate: Certificate, host: str) -> None:
    """Nobody is in between, so the certificate need not be trusted."""
    async with running_mail_server(certificate=certificate) as server:
        await send(at(server, host=host), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert [received.had_tls for received in server.received] == [True]


async def test_another_machine_must_offer_tls() -> None:
    """An attacker who strips STARTTLS from the greeting gets no mail."""
    async with running_mail_server(host=ELSEWHERE) as server:
        with pytest.raises(MailNotSent):
            await send(at(server, host=ELSEWHERE), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert server.connections_count == 1
    assert server.received == []


@pytest.mark.parametrize("is_implicit_tls", [True, False])
async def test_another_machine_must_show_a_certificate_that_verifies(
    certificate: Certificate, *, is_implicit_tls: bool
) -> None:
    async with running_mail_server(certificate=certificate, is_implicit_tls=is_implicit_tls, host=ELSEWHERE) as server:
        elsewhere = at(server, host=ELSEWHERE, is_implicit_tls=is_implicit_tls)
        with pytest.raises(MailNotSent):
            await send(elsewhere, MAIL, greeting=GREETING, deadline=DEADLINE)
        assert server.received == []
        await send(elsewhere, MAIL, greeting=GREETING, deadline=DEADLINE, extra_ca_file=certificate.certificate_file)
    assert [received.had_tls for received in server.received] == [True]


async def test_tls_from_the_start(certificate: Certificate) -> None:
    async with running_mail_server(certificate=certificate, is_implicit_tls=True) as server:
        await send(at(server, is_implicit_tls=True), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert [received.had_tls for received in server.received] == [True]


async def test_a_server_that_asks_for_a_login_gets_it_over_tls(certificate: Certificate) -> None:
    async with running_mail_server(certificate=certificate, needs_login=True) as server:
        await send(at(server, login=(USERNAME, PASSWORD)), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert [(received.had_tls, received.login) for received in server.received] == [(True, USERNAME)]


@pytest.mark.parametrize("greeting", ["soundmark.example.org", "[192.0.2.1]", "[IPv6:2001:db8::1]"])
async def test_a_strict_server_is_greeted_by_a_full_name_or_an_address(greeting: str) -> None:
    async with running_mail_server() as server:
        server.is_strict = True
        await send(at(server), MAIL, greeting=greeting, deadline=DEADLINE)
    assert (set(server.greetings), len(server.received)) == ({greeting}, 1)


async def test_without_a_name_the_greeting_is_the_address_of_the_connection(certificate: Certificate) -> None:
    async with running_mail_server(certificate=certificate) as server:
        server.is_strict = True
        await send(at(server), MAIL, greeting=None, deadline=DEADLINE)
    # Before and after STARTTLS.
    assert server.greetings == ["[127.0.0.1]", "[127.0.0.1]"]


@pytest.mark.parametrize(
    ("base_url", "greeting"),
    [
        ("https://soundmark.example.org/api", "soundmark.example.org"),
        ("https://soundmark.example.org.", "soundmark.example.org"),
        ("http://192.0.2.1:8080", "[192.0.2.1]"),
        ("http://[2001:db8::1]:8080", "[IPv6:2001:db8::1]"),
        ("http://localhost:8080", None),
        ("http://core:8080", None),
        ("http://core_1.example:8080", None),
    ],
)
def test_the_greeting_is_the_host_of_the_base_url_if_others_know_it(base_url: str, greeting: str | None) -> None:
    assert find_greeting(base_url) == greeting


async def test_a_strict_server_that_refuses_the_name_is_tried_again() -> None:
    """It says so at RCPT, and yet it does not mean the recipient."""
    async with running_mail_server() as server:
        server.is_strict = True
        with pytest.raises(MailNotSent) as failed:
            await send(at(server), MAIL, greeting="core", deadline=DEADLINE)
    assert failed.value.reason == "504"


async def test_a_wrong_password_is_not_final(certificate: Certificate) -> None:
    """An operator may put it right before the next attempt."""
    async with running_mail_server(certificate=certificate, needs_login=True) as server:
        with pytest.raises(MailNotSent) as failed:
            await send(at(server, login=(USERNAME, "wrong")), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert failed.value.reason == "535"


@pytest.mark.parametrize("command", ["RCPT", "DATA"])
async def test_a_reply_5xx_to_the_recipient_or_the_message_is_final(command: str) -> None:
    async with running_mail_server() as server:
        server.replies[command] = "550 no such person as ada@example.org"
        with pytest.raises(MailRefused) as refused:
            await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert (refused.value.reason, "ada" in str(refused.value)) == ("550", False)


@pytest.mark.parametrize(
    ("reply", "is_final"),
    [
        ("501 5.5.2 <core>: Helo command rejected: Invalid name", False),
        ("550 5.7.1 <core>: Helo command rejected: Host not found", False),
        ("554 5.7.1 Service unavailable; Client host blocked", False),
        ("550 5.7.25 The IP address has no PTR record", False),
        ("535 Authentication required", False),
        ("550-5.1.1 The account does not exist\r\n550 5.1.1 Check it", True),
        ("553 5.1.3 Bad destination", True),
        ("552 5.2.2 Mailbox full", True),
        ("550 No relay for 5.7.1.9", True),
    ],
)
async def test_a_reply_to_the_recipient_that_is_about_us_is_not_final(reply: str, *, is_final: bool) -> None:
    async with running_mail_server() as server:
        server.replies["RCPT"] = reply
        with pytest.raises(MailRefused if is_final else MailNotSent) as failed:
            await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert failed.value.reason == reply[:3]


@pytest.mark.parametrize(("command", "code"), [("EHLO", 504), ("MAIL", 550), ("RCPT", 503), ("DATA", 530)])
async def test_a_reply_5xx_to_the_session_is_not_final(command: str, code: int) -> None:
    async with running_mail_server() as server:
        server.replies[command] = f"{code} not like this"
        server.replies["HELO"] = f"{code} nor like this"
        with pytest.raises(MailNotSent) as failed:
            await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert failed.value.reason == str(code)


async def test_a_server_that_refuses_the_connection_is_tried_again() -> None:
    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"554 no service here\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        server = MailServer(port=listening.sockets[0].getsockname()[1])
        with pytest.raises(MailNotSent) as failed:
            await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert failed.value.reason == "554"


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
async def test_a_reply_4xx_is_not_final(command: str) -> None:
    async with running_mail_server() as server:
        server.replies[command] = "450 ada@example.org is busy"
        with pytest.raises(MailNotSent) as failed:
            await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert (failed.value.reason, "ada" in str(failed.value)) == ("450", False)


async def test_a_server_that_is_not_there() -> None:
    async with running_mail_server() as server:
        pass
    with pytest.raises(MailNotSent):
        await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)


async def test_a_host_that_does_not_exist() -> None:
    async with running_mail_server() as server:
        with pytest.raises(MailNotSent):
            await send(at(server, host="mail.invalid"), MAIL, greeting=GREETING, deadline=DEADLINE)


async def test_a_server_that_drops_the_connection_after_the_mail() -> None:
    """Nobody knows whether the mail was accepted."""
    async with running_mail_server() as server:
        server.on_data = lambda protocol: protocol.transport.abort()
        with pytest.raises(MailNotSent):
            await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert len(server.received) == 1


async def test_a_server_that_never_answers_is_left_at_the_deadline() -> None:
    async with running_mail_server() as server:
        server.is_hanging = True
        with pytest.raises(MailNotSent) as failed:
            await send(at(server), MAIL, greeting=GREETING, deadline=timedelta(seconds=0.5))
    assert failed.value.reason == "TimeoutError"


async def test_a_server_that_never_greets_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp, "_COMMAND_TIMEOUT_S", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with listening:
        server = MailServer(port=listening.sockets[0].getsockname()[1])
        with pytest.raises(MailNotSent):
            await send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE)


async def test_a_failed_quit_changes_nothing() -> None:
    """The mail is accepted: sent again, it would arrive twice."""

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 hello\r\n")
        while line := await reader.readline():
            if line.startswith(b"QUIT"):
                break
            if line.startswith(b"DATA"):
                writer.write(b"354 go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
            writer.write(b"250 OK\r\n")
        writer.close()

    server = await asyncio.start_server(closing, "127.0.0.1", 0)
    async with server:
        await send(at(MailServer(port=server.sockets[0].getsockname()[1])), MAIL, greeting=GREETING, deadline=DEADLINE)


async def test_an_address_beyond_ascii_needs_a_server_that_knows_them() -> None:
    async with running_mail_server() as server:
        await send(at(server), UTF8_MAIL, greeting=GREETING, deadline=DEADLINE)
        assert [received.recipient for received in server.received] == ["ärger@example.org"]
    async with running_mail_server(knows_utf8=False) as server:
        with pytest.raises(MailRefused) as refused:
            await send(at(server), UTF8_MAIL, greeting=GREETING, deadline=DEADLINE)
        assert (refused.value.reason, server.received) == ("no_smtputf8", [])


async def test_a_name_that_leads_to_a_refused_address_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp, "is_refused_address", lambda address: address.is_loopback)
    async with running_mail_server() as server:
        with pytest.raises(MailNotSent) as failed:
            await send(at(server, host="localhost"), MAIL, greeting=GREETING, deadline=DEADLINE)
    assert (failed.value.reason, server.greetings) == ("address_refused", [])


async def test_a_cancelled_sending_leaves_no_connection() -> None:
    async with running_mail_server() as server:
        server.is_hanging = True
        sending = asyncio.create_task(send(at(server), MAIL, greeting=GREETING, deadline=DEADLINE))
        await server.until_received()
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        assert sending.cancelled()


def test_a_mail_does_not_print_its_content() -> None:
    assert "Hello" not in repr(MAIL)
