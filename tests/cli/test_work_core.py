"""`soundmark work core` as its own process: a person is invited, gets a mail, and joins."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.api.core_client import Api
from support.api.core_settings import AUDIENCE_CREDENTIAL, BASE_URL, MASTER_KEY
from support.database.rival import Rival
from support.outside.mail_server import PASSWORD, USERNAME, MailServer, make_certificate, running_mail_server
from support.processes.command_server import find_forked_soundmark
from support.tenancy.people import People
from support.tenancy.release_evidence import make_evidence
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret

from .conftest import environ, run

END_S = 60


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[MailServer]:
    """A server that accepts mail only after STARTTLS and a login."""
    certificate = make_certificate(tmp_path, "127.0.0.1")
    async with running_mail_server(certificate=certificate, needs_login=True) as running:
        yield running


@pytest.fixture
async def tenant(api: Api, people: People, server: MailServer, rival: Rival) -> Tenant:
    """A tenant of a platform that sends mail through that server."""
    await rival.run("TRUNCATE procrastinate_workers CASCADE")
    values = {"smtp_host": "127.0.0.1", "smtp_port": server.port, "smtp_secure": False}
    for name, value in {**values, "smtp_from_email": "codes@example.org"}.items():
        await put(api, f"configuration/{name}", value)
    await put(api, "secrets/smtp_username", USERNAME)
    await put(api, "secrets/smtp_password", PASSWORD)
    return await people.tenant_of("owner")


async def put(api: Api, path: str, value: Any) -> None:
    answer = await api.call("PUT", f"/v1/platform/settings/{path}", json={"value": value})
    assert answer.status in {200, 204}, answer.body


@dataclass(frozen=True)
class Worker:
    """The command, ready to run, and the output of all its runs."""

    settings: Mapping[str, str]
    log: Path

    @contextlib.asynccontextmanager
    async def __call__(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                find_forked_soundmark(), "work", "core", *arguments, env=environ(self.settings), stdout=log, stderr=log
            )
            try:
                yield process
            finally:
                if process.returncode is None:
                    process.terminate()
                await asyncio.wait_for(process.wait(), END_S)


def find_port() -> int:
    """Return a free port below those that the system hands out, so that nothing else takes it before the worker."""
    for port in range(20_000 + os.getpid() % 10_000, 32_768):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


@pytest.fixture
def worker(database_url: Secret, tmp_path: Path) -> Worker:
    """Core's worker."""
    settings = {
        "BASE_URL": BASE_URL,
        "CORE_DATABASE_URL": database_url.reveal(),
        "AUDIENCE_URL": "http://127.0.0.1:9",
        "AUDIENCE_CREDENTIAL": AUDIENCE_CREDENTIAL,
        "MASTER_KEY": MASTER_KEY,
        "LOG_LEVEL": "debug",
        "RELEASE_EVIDENCE_PATH": str(tmp_path / "evidence.json"),
        "JOBS_METRICS_PORT": str(find_port()),
    }
    (tmp_path / "evidence.json").write_text(json.dumps(make_evidence()))
    return Worker(settings, tmp_path / "log")


# The queue's housekeeping, which runs each minute, at once.
RETRYING = (
    "INSERT INTO procrastinate_jobs (queue_name, task_name, args)"
    " VALUES ('default', 'retry_stalled_jobs', '{\"timestamp\": 0}')"
)


async def until_delivered(rival: Rival, status: str) -> None:
    await rival.until_rows("SELECT delivery_status FROM invitations", (status,))


async def test_a_person_is_invited_gets_a_mail_and_joins(
    people: People, tenant: Tenant, server: MailServer, worker: Worker, rival: Rival
) -> None:
    async with worker() as process:
        invitation = await tenant.make_invitation(email="Ada@example.org", role="admin")
        await until_delivered(rival, "sent")
        # The worker reads the release evidence at start, and serves metrics.
        await rival.until_rows("SELECT finding FROM release_readiness", (None,))
        served = httpx2.get(f"http://127.0.0.1:{worker.settings['JOBS_METRICS_PORT']}/metrics")
        assert "soundmark_webhook_deliveries_pending 0.0" in served.text
        process.terminate()
        assert await process.wait() == 0
    (mail,) = server.received
    assert (mail.had_tls, mail.login, mail.recipient) == (True, USERNAME, "Ada@example.org")
    assert mail.token == invitation["secret"]
    assert await rival.rows("SELECT sealed_secret FROM invitations") == [(None,)]

    ada = people.person("ada", email="ada@example.org")
    joined = await ada.post("/v1/member-invitations/accept", json={"token": mail.token})
    assert (joined.status, joined.json) == (200, {"organization_id": tenant.organization_id, "role": "admin"})
    assert (await ada.get("/v1/members", params=tenant.query)).status == 200

    logged = worker.log.read_text()
    assert invitation["id"] in logged, "something was logged"
    for secret in (invitation["secret"].removeprefix("xin_"), PASSWORD, MASTER_KEY, "ada@", "Ada@", "codes@"):
        assert secret not in logged


async def test_a_worker_that_is_killed_after_the_mail_loses_nothing(
    tenant: Tenant, server: MailServer, worker: Worker, rival: Rival
) -> None:
    """Killed after the server accepted the mail and before the row says so: the same mail is sent again."""
    async with worker() as process:

        def kill(_: Any) -> None:
            # The worker ends a moment after the process that stands for it, and must get no answer in that moment.
            server.is_hanging = True
            os.kill(process.pid, signal.SIGKILL)

        server.on_data = kill
        invitation = await tenant.make_invitation()
        assert await asyncio.wait_for(process.wait(), END_S) == -signal.SIGKILL
    server.on_data, server.is_hanging = None, False
    columns = "SELECT delivery_status, delivery_attempts, sealed_secret IS NOT NULL FROM invitations"
    assert await rival.rows(columns) == [("processing", 1, True)]

    # Time passes: the dead worker is noticed, and its lease is over.
    await rival.run("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
    await rival.run("UPDATE invitations SET delivery_due_at = now()")
    await rival.run(RETRYING)
    async with worker():
        await until_delivered(rival, "sent")
    one, other = server.received
    assert one.content == other.content
    assert one.message["Message-ID"] == f"<{invitation['id']}@core.test>"
    assert await rival.rows(columns) == [("sent", 2, False)]


async def test_a_data_dir_replaces_the_settings(
    tenant: Tenant, server: MailServer, worker: Worker, rival: Rival, tmp_path: Path
) -> None:
    """The mail server's settings are in the database, so nothing else is needed."""
    changes = {name.lower(): worker.settings[name] for name in ("BASE_URL", "CORE_DATABASE_URL", "AUDIENCE_URL")}
    (tmp_path / "up.json").write_text(json.dumps({"pid": 1, **changes}))
    (tmp_path / "master.key").write_text(MASTER_KEY)
    async with Worker({}, worker.log)("--data-dir", str(tmp_path)):
        await tenant.make_invitation()
        await until_delivered(rival, "sent")
    assert BASE_URL in server.received[0].part("plain")


async def test_a_mail_is_tried_again_by_itself(
    tenant: Tenant, server: MailServer, worker: Worker, rival: Rival
) -> None:
    server.replies["RCPT"] = "451 try again later"
    async with worker():
        await tenant.make_invitation()
        waiting = "SELECT status::text, attempts FROM procrastinate_jobs WHERE task_name = 'deliver_invitation'"
        await rival.until_rows(waiting, ("todo", 1))
        pause = "SELECT scheduled_at - now() BETWEEN interval '10 s' AND interval '30 s' FROM procrastinate_jobs"
        assert (True,) in await rival.rows(f"{pause} WHERE task_name = 'deliver_invitation'")
        server.replies.clear()
        await rival.run("UPDATE invitations SET delivery_due_at = now()")
        await rival.run("UPDATE procrastinate_jobs SET scheduled_at = now() WHERE task_name = 'deliver_invitation'")
        await until_delivered(rival, "sent")
    assert len(server.received) == 1


def test_a_port_of_metrics_in_use_is_refused_in_one_line(worker: Worker) -> None:
    """As for a second worker on a machine with the settings of the first."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = run("work", "core", settings={**worker.settings, "JOBS_METRICS_PORT": port})
    assert done.refusal == (
        f"the jobs of core stopped: 127.0.0.1:{port} is in use by another program; "
        "SOUNDMARK_JOBS_METRICS_PORT chooses another port"
    )
