"""A worker that delivers invitations through a mail server of the tests."""

import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.mail_server import MailServer, configure_mail, running_mail_server
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.tenancy.invitations import jobs
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.job_queue import Later

PAUSES_S = [30, 120, 480, 1920]


@pytest.fixture
async def mail_server() -> AsyncIterator[MailServer]:
    """A mail server that keeps what it receives."""
    async with running_mail_server() as running:
        yield running


@pytest.fixture
async def tenant(api: Api, mail_server: MailServer) -> Tenant:
    """A tenant of a platform that uses this mail server."""
    await configure_mail(api, mail_server)
    return await make_tenant(api)


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    async with make_worker(database_url, clock) as made:
        yield made


async def deliver(ctx: Context, invitation: dict[str, Any]) -> dt.datetime | None:
    """Run the job and return when it must run again, or None."""
    try:
        await jobs.deliver(ctx, organization_id=invitation["organization_id"], invitation_id=invitation["id"])
    except Later as later:
        return later.at
    return None


async def read_delivery(rival: Rival, invitation: dict[str, Any]) -> tuple[str, int, bool]:
    """Return the delivery's status and attempts, and whether a sealed secret is kept."""
    rows = await rival.rows(
        "SELECT delivery_status, delivery_attempts, sealed_secret IS NOT NULL FROM invitations WHERE id = %s",
        invitation["id"],
    )
    found: tuple[str, int, bool] = rows[0]
    return found
