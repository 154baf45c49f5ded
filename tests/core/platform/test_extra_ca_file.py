"""`SOUNDMARK_EXTRA_CA_FILE`: authorities that every outgoing TLS connection trusts besides the system's."""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.api.core_settings import core_settings, jobs_settings
from support.outside.mail_server import running_mail_server
from support.outside.misbehaving_server import answer
from support.outside.private_authority import PrivateAuthority, make_authority, tls_server
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core

from soundmark.core.context import Context
from soundmark.core.providers.smtp import Mail, MailNotSent, send
from soundmark.core.providers.smtp_settings import SmtpServer
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import SettingsInvalid

# A host name that leads to this machine, although its spelling does not show it: mail from here is not checked.
ELSEWHERE = "0.0.0.0"  # noqa: S104 - connected to


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> PrivateAuthority:
    """An authority that no operating system trusts."""
    return make_authority(tmp_path_factory.mktemp("authority"), "127.0.0.1", ELSEWHERE)


@contextlib.asynccontextmanager
async def make_trusting_worker(url: Secret, ca_file: Path | None, **changes: str) -> AsyncIterator[Context]:
    """Yield the context of a worker that trusts the authorities of a file."""
    ctx = make_job_context(jobs_settings(url, EXTRA_CA_FILE=str(ca_file or ""), **changes))
    try:
        yield ctx
    finally:
        await ctx.cells.aclose()
        await ctx.accounting.aclose()


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_private_components(authority: PrivateAuthority, *, is_trusted: bool) -> None:
    async with tls_server(authority, answer(b"{}")) as server:
        ca_file = authority.ca_file if is_trusted else None
        async with make_trusting_worker(Secret("postgresql://h/d"), ca_file, AUDIENCE_URL=server.url) as ctx:
            assert await ctx.cells.are_ready() is is_trusted
    assert len(server.requests) == is_trusted


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_mail(authority: PrivateAuthority, *, is_trusted: bool) -> None:
    mail = Mail("codes@example.org", "ada@example.org", b"Subject: hello\r\n\r\nHello\r\n")
    async with running_mail_server(certificate=authority.issued, host=ELSEWHERE) as server:
        elsewhere = SmtpServer(ELSEWHERE, server.port, False, "codes@example.org", "Soundmark", None, None)
        async with make_trusting_worker(Secret("postgresql://h/d"), authority.ca_file if is_trusted else None) as ctx:
            with contextlib.nullcontext() if is_trusted else pytest.raises(MailNotSent):
                await send(
                    elsewhere,
                    mail,
                    greeting=ctx.smtp_greeting,
                    deadline=dt.timedelta(seconds=20),
                    extra_ca_file=ctx.extra_ca_file,
                )
    assert [received.had_tls for received in server.received] == [True] * is_trusted


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_the_identity_provider(
    authority: PrivateAuthority, spare_database_url: Secret, *, is_trusted: bool
) -> None:
    """Core asks it when it starts, and the log says what is wrong."""
    async with tls_server(authority, answer(b"{}")) as server:
        settings = core_settings(
            spare_database_url,
            oidc_issuer=server.url,
            oidc_client_id="console",
            extra_ca_file=authority.ca_file if is_trusted else None,
        )
        async with running_core(settings, FakeClock()) as api:
            refused = await api.other(token="e30.e30.e30").get("/v1/organizations")
            assert refused.status in {401, 503}
            unsigned = await api.other(token="eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.e30.AA").get("/v1/organizations")
            assert unsigned.status in {401, 503}
    assert bool(server.requests) is is_trusted


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid) as invalid:
        jobs_settings(Secret("postgresql://h/d"), EXTRA_CA_FILE=str(tmp_path / "missing.pem"))
    assert invalid.value.faults == ["SOUNDMARK_EXTRA_CA_FILE: cannot be read: No such file or directory"]


@pytest.mark.parametrize("content", ["", "not PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_file_without_a_certificate(tmp_path: Path, content: str) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(content)
    with pytest.raises(SettingsInvalid) as invalid:
        jobs_settings(Secret("postgresql://h/d"), EXTRA_CA_FILE=str(file))
    assert invalid.value.faults == ["SOUNDMARK_EXTRA_CA_FILE: must be a PEM file with at least one certificate"]


def test_several_authorities_with_remarks(tmp_path: Path, authority: PrivateAuthority) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(
        f"# die Stellen der Prüfung\n{authority.ca_file.read_text()}\n# and\n{authority.ca_file.read_text()}"
    )
    assert jobs_settings(Secret("postgresql://h/d"), EXTRA_CA_FILE=str(file)).extra_ca_file == file
