"""Endpoints at a consumer of the tests, and a dispatcher that takes one step at a time."""

import base64
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant
from support.webhooks.consumer import WebhookConsumer, running_consumer

from soundmark.core.context import Context
from soundmark.core.features.webhooks.delivery.dispatcher import Dispatcher
from soundmark.core.features.webhooks.fan_out.service import fan_out
from soundmark.core.steps.webhook_secrets import seal_earlier, seal_secret
from soundmark.kit.crypto.secret import Secret

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
NEXT_SECRET = "whsec_" + base64.b64encode(b"t" * 32).decode()


@dataclass(frozen=True)
class Delivered:
    """The row of a delivery."""

    status: str
    attempts: int
    last_status_code: int | None
    last_error: str | None
    next_attempt_at: Any


class Endpoints:
    """Makes endpoints in the database, and reads what became of their deliveries."""

    def __init__(self, rival: Rival, ctx: Context, tenant: Tenant) -> None:
        self._rival, self._ctx, self._tenant = rival, ctx, tenant
        self._numbers = itertools.count()

    async def make(self, url: str, *, enabled: bool = True, event_types: list[str] | None = None) -> str:
        endpoint_id = f"whe_{next(self._numbers):022}"
        await self._rival.run(
            "INSERT INTO webhook_endpoints (organization_id, id, url, event_types, enabled, sealed_secret, created_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            self._tenant.organization_id,
            endpoint_id,
            url,
            event_types,
            enabled,
            seal_secret(self._ctx.sealer, endpoint_id, Secret(SECRET)),
            self._ctx.clock.now(),
        )
        return endpoint_id

    async def roll(self, endpoint_id: str, *, until: Any) -> None:
        """Give the endpoint `NEXT_SECRET`, and let the other one sign until then."""
        ((sealed,),) = await self._rival.rows("SELECT sealed_secret FROM webhook_endpoints WHERE id = %s", endpoint_id)
        await self._rival.run(
            "UPDATE webhook_endpoints SET sealed_secret = %s, sealed_earlier_secret = %s, earlier_secret_until = %s"
            " WHERE id = %s",
            seal_secret(self._ctx.sealer, endpoint_id, Secret(NEXT_SECRET)),
            seal_earlier(self._ctx.sealer, endpoint_id, sealed),
            until,
            endpoint_id,
        )

    async def read(self, endpoint_id: str) -> tuple[bool, str | None, Any]:
        """Return whether the endpoint is enabled, why not, and since when it is failing."""
        ((enabled, reason, since),) = await self._rival.rows(
            "SELECT enabled, disabled_reason, failing_since FROM webhook_endpoints WHERE id = %s", endpoint_id
        )
        return enabled, reason, since

    async def deliveries(self, endpoint_id: str) -> list[Delivered]:
        """Return the endpoint's deliveries, oldest first."""
        rows = await self._rival.rows(
            "SELECT status, attempts, last_status_code, last_error, next_attempt_at FROM webhook_deliveries"
            " WHERE endpoint_id = %s ORDER BY created_at, id",
            endpoint_id,
        )
        return [Delivered(*row) for row in rows]

    async def delivery(self, endpoint_id: str) -> Delivered:
        """Return the endpoint's only delivery."""
        (found,) = await self.deliveries(endpoint_id)
        return found


class Steps:
    """A dispatcher whose loops do not run, but take a step when they are told to."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.dispatcher = Dispatcher(ctx, fan_out)

    async def begin(self) -> None:
        """Turn acts into deliveries, claim what is due, and begin the attempts."""
        while await fan_out(self.ctx):
            pass
        while await self.dispatcher.dispatch_once():
            pass

    async def deliver(self) -> None:
        """Do so, and wait until the attempts have ended and what followed from them is stored."""
        await self.begin()
        await self.dispatcher.finish_attempts()


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    async with make_worker(database_url, clock) as made:
        yield made


@pytest.fixture
def steps(ctx: Context) -> Steps:
    """The dispatcher's steps, one at a time."""
    return Steps(ctx)


@pytest.fixture
def endpoints(rival: Rival, ctx: Context, tenant: Tenant) -> Endpoints:
    """The endpoints of the organisation."""
    return Endpoints(rival, ctx, tenant)


@pytest.fixture
async def consumer() -> AsyncIterator[WebhookConsumer]:
    """A consumer of webhooks."""
    async with running_consumer() as running:
        yield running
