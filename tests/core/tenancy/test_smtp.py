"""Handing a mail to a mail server: which TLS is used, and which replies are final."""

import asyncio
import contextlib
from datetime import timedelta

import pytest
from support.mail_server import PASSWORD, USERNAME, Certificate, MailServer, make_certificate, running_mail_server

from soundmark.core.providers import smtp
from soundmark.core.providers.smtp import Mail, MailNotSent, MailRefused, send
from soundmark.core.providers.smtp_settings import SmtpServer
from soundmark.kit.crypto.secret import Secret

DEADLINE = timedelta(seconds=20)
MAIL = Mail("codes@example.org", "ada@example.org", b"Subject: hello\r\n\r\nHello\r\n")
UTF8_MAIL = Mail("codes@example.org", "ärger@example.org", "Subject: hellö\r\n\r\nHello\r\n".encode())
# A host name that leads to this machine, although its spelling does not show it.
ELSEWHERE = "0.0.0.0"  # noqa: S104 - connected to


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("mail"), ELSEWHERE, "127.0.0.1")


def at(
    server: MailServer, *, host: str = "127.0.0.1", is_implicit_tls: bool = False, login: tuple[str, str] | None = None
) -> SmtpServer:
    username, password = map(Secret, login) if login else (None, None)
    return SmtpServer(host, server.port, is_implicit_tls, "codes@example.org", "Soundmark", username, password)


async def test_the_mail_arrives_as_it_is() -> None:
    async with running_mail_server() as server:
        await send(at(server), MAIL, deadline=DEADLINE)
    (received,) = server.received
    assert (received.sender, received.recipient) == (MAIL.sender, MAIL.recipient)
    assert received.content == MAIL.message
    assert not received.had_tls


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost"])
async def test_this_machine_gets_tls_if_it_offers_it(certificate: Certificate, host: str) -> None:
    """Nobody is in between, so the certificate need not be trusted."""
    async with running_mail_server(certificate=certificate) as server:
        await send(at(server, host=host), MAIL, deadline=DEADLINE)
    assert [received.had_tls for received in server.received] == [True]


async def test_another_machine_must_offer_tls() -> None:
    """An attacker who strips STARTTLS from the greeting gets no mail."""
    async with running_mail_server(host=ELSEWHERE) as server:
        with pytest.raises(MailNotSent):
            await send(at(server, host=ELSEWHERE), MAIL, deadline=DEADLINE)
    assert server.connections_count == 1
    assert server.received == []


@pytest.mark.parametrize("is_implicit_tls", [True, False])
async def test_another_machine_must_show_a_certificate_that_verifies(
    certificate: Certificate, *, is_implicit_tls: bool
) -> None:
    async with running_mail_server(certificate=certificate, is_implicit_tls=is_implicit_tls, host=ELSEWHERE) as server:
        elsewhere = at(server, host=ELSEWHERE, is_implicit_tls=is_implicit_tls)
        with pytest.raises(MailNotSent):
            await send(elsewhere, MAIL, deadline=DEADLINE)
        assert server.received == []
        await send(elsewhere, MAIL, deadline=DEADLINE, extra_ca_file=certificate.certificate_file)
    assert [received.had_tls for received in server.received] == [True]


async def test_tls_from_the_start(certificate: Certificate) -> None:
    async with running_mail_server(certificate=certificate, is_implicit_tls=True) as server:
        await send(at(server, is_implicit_tls=True), MAIL, deadline=DEADLINE)
    assert [received.had_tls for received in server.received] == [True]


async def test_a_server_that_asks_for_a_login_gets_it_over_tls(certificate: Certificate) -> None:
    async with running_mail_server(certificate=certificate, needs_login=True) as server:
        await send(at(server, login=(USERNAME, PASSWORD)), MAIL, deadline=DEADLINE)
    assert [(received.had_tls, received.login) for received in server.received] == [(True, USERNAME)]


async def test_a_wrong_password_is_final(certificate: Certificate) -> None:
    async with running_mail_server(certificate=certificate, needs_login=True) as server:
        with pytest.raises(MailRefused) as refused:
            await send(at(server, login=(USERNAME, "wrong")), MAIL, deadline=DEADLINE)
    assert refused.value.code == 535


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("code", [500, 550, 554])
async def test_a_reply_5xx_is_final(command: str, code: int) -> None:
    async with running_mail_server() as server:
        server.replies[command] = f"{code} no such person as ada@example.org"
        with pytest.raises(MailRefused) as refused:
            await send(at(server), MAIL, deadline=DEADLINE)
    assert (refused.value.code, "ada" in str(refused.value)) == (code, False)


@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("code", [421, 450, 451, 452])
async def test_a_reply_4xx_is_not_final(command: str, code: int) -> None:
    async with running_mail_server() as server:
        server.replies[command] = f"{code} ada@example.org is busy"
        with pytest.raises(MailNotSent) as failed:
            await send(at(server), MAIL, deadline=DEADLINE)
    assert (failed.value.reason, "ada" in str(failed.value)) == (str(code), False)


async def test_a_server_that_is_not_there() -> None:
    async with running_mail_server() as server:
        pass
    with pytest.raises(MailNotSent):
        await send(at(server), MAIL, deadline=DEADLINE)


async def test_a_host_that_does_not_exist() -> None:
    async with running_mail_server() as server:
        with pytest.raises(MailNotSent):
            await send(at(server, host="mail.invalid"), MAIL, deadline=DEADLINE)


async def test_a_server_that_drops_the_connection_after_the_mail() -> None:
    """Nobody knows whether the mail was accepted."""
    async with running_mail_server() as server:
        server.on_data = lambda protocol: protocol.transport.abort()
        with pytest.raises(MailNotSent):
            await send(at(server), MAIL, deadline=DEADLINE)
    assert len(server.received) == 1


async def test_a_server_that_never_answers_is_left_at_the_deadline() -> None:
    async with running_mail_server() as server:
        server.is_hanging = True
        with pytest.raises(MailNotSent) as failed:
            await send(at(server), MAIL, deadline=timedelta(seconds=0.5))
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
            await send(at(server), MAIL, deadline=DEADLINE)


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
        await send(at(MailServer(port=server.sockets[0].getsockname()[1])), MAIL, deadline=DEADLINE)


async def test_an_address_beyond_ascii_needs_a_server_that_knows_them() -> None:
    async with running_mail_server() as server:
        await send(at(server), UTF8_MAIL, deadline=DEADLINE)
        assert [received.recipient for received in server.received] == ["ärger@example.org"]
    async with running_mail_server(knows_utf8=False) as server:
        with pytest.raises(MailNotSent):
            await send(at(server), UTF8_MAIL, deadline=DEADLINE)
        assert server.received == []


async def test_a_cancelled_sending_leaves_no_connection() -> None:
    async with running_mail_server() as server:
        server.is_hanging = True
        sending = asyncio.create_task(send(at(server), MAIL, deadline=DEADLINE))
        await server.until_received()
        sending.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sending
        assert sending.cancelled()


def test_a_mail_does_not_print_its_content() -> None:
    assert "Hello" not in repr(MAIL)
