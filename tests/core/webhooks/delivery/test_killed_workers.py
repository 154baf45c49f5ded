"""Processes that are killed between a commit and the delivery of what it did, over and over."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from support.api.core_settings import AUDIENCE_CREDENTIAL, BASE_URL, MASTER_KEY
from support.database.rival import Rival
from support.processes.up_process import clean_environ
from support.tenancy.tenant import Tenant
from support.webhooks import fork_dispatchers
from support.webhooks.consumer import WebhookConsumer

from soundmark.kit.crypto.secret import Secret

from .conftest import SECRET, Endpoints

KILLS: Final = 200
_DEADLINE_S: Final = 240


async def test_nothing_is_lost_however_often_processes_are_killed(
    tenant: Tenant, consumer: WebhookConsumer, endpoints: Endpoints, rival: Rival, database_url: Secret
) -> None:
    """Every act that was committed arrives; a message that arrives twice has the same id and the same bytes."""
    await endpoints.make(consumer.url)
    async with asyncio.timeout(_DEADLINE_S), _forking(database_url, tenant.organization_id) as lines:
        for number in range(KILLS):
            pid = await _next_pid(lines)
            arrived = len(consumer.messages)
            match number % 4:
                case 0:
                    await lines.readline()  # After a commit, before its delivery.
                case 1:
                    await consumer.until_arrived(arrived + 1)  # Before the outcome is stored.
                case 2:
                    await consumer.until_arrived(arrived + 3)
                case _:
                    pass  # Before or while it commits.
            os.kill(pid, signal.SIGKILL)
        await _next_pid(lines)
        for _ in range(fork_dispatchers.ACTS_OF_EACH):
            await lines.readline()
        await _until_delivered(rival)
    committed = await rival.rows(
        "SELECT metadata::jsonb->>'number' FROM audit_entries WHERE action = 'organization.updated'"
    )
    by_id = {message.id: message.body for message in consumer.messages}
    assert len(by_id) == len(committed) > KILLS / 2
    assert {(message.content["data"]["number"],) for message in consumer.messages} == set(committed)
    assert {(message.id, message.body) for message in consumer.messages} == set(by_id.items())
    assert all(message.signed_by(SECRET) for message in consumer.messages)
    assert max(Counter(message.id for message in consumer.messages).values()) > 1, "none was killed in time"


@contextlib.asynccontextmanager
async def _forking(database_url: Secret, organization_id: str) -> AsyncIterator[asyncio.StreamReader]:
    """Run the forking process; yield the lines that it and its children print."""
    environ = {
        "SOUNDMARK_CORE_DATABASE_URL": database_url.reveal(),
        "SOUNDMARK_MASTER_KEY": MASTER_KEY,
        "SOUNDMARK_BASE_URL": BASE_URL,
        "SOUNDMARK_AUDIENCE_URL": "http://127.0.0.1:9",
        "SOUNDMARK_AUDIENCE_CREDENTIAL": AUDIENCE_CREDENTIAL,
        "SOUNDMARK_WEBHOOK_ALLOW_LOOPBACK": "true",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(fork_dispatchers.__file__)),
        organization_id,
        env=clean_environ(environ),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None, "it is piped"
    try:
        yield process.stdout
    finally:
        process.kill()
        await process.wait()


async def _next_pid(lines: asyncio.StreamReader) -> int:
    """Return the id of the next process, which it prints when it has begun."""
    while True:
        line = (await lines.readline()).decode().strip()
        assert line, "the forking process has ended"
        if line.isdecimal():
            return int(line)


async def _until_delivered(rival: Rival) -> None:
    """Wait until no act and no delivery is left."""
    left = "SELECT 1 FROM webhook_acts UNION ALL SELECT 1 FROM webhook_deliveries WHERE status = 'pending'"
    await rival.until_rows(left)
