"""Slow endpoints of some organisations hold up no other organisation."""

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant
from support.webhooks.consumer import running_consumer

from soundmark.core.domain.webhooks.endpoint import ENDPOINTS_MAX
from soundmark.core.features.webhooks.delivery import sending
from soundmark.core.features.webhooks.delivery.lanes import RUNNING_MAX

from .conftest import Endpoints, Steps

SLOW_ORGANIZATIONS = 10


@pytest.fixture(autouse=True)
def no_attempt_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts may take as long as the test."""
    monkeypatch.setattr(sending, "TIMEOUT_S", 300)


async def make_backlog(rival: Rival, steps: Steps, tenant: Tenant, url: str, events_count: int) -> None:
    """Make as many endpoints as an organisation may have, and acts for all of them."""
    endpoints = Endpoints(rival, steps.ctx, tenant)
    for _ in range(ENDPOINTS_MAX):
        await endpoints.make(url)
    for number in range(events_count):
        await tenant.make_campaign(f"Evening {number}")


async def test_ten_organisations_with_twenty_slow_endpoints_each_hold_up_nobody_else(
    api: Api, tenant: Tenant, rival: Rival, steps: Steps
) -> None:
    """All their attempts are under way and none ends, and the events of another organisation are delivered."""
    async with running_consumer() as slow, running_consumer() as prompt:
        slow.otherwise = "held"
        for _ in range(SLOW_ORGANIZATIONS):
            await make_backlog(rival, steps, await make_tenant(api), slow.url, 3)
        await steps.begin()
        await slow.until_arrived(SLOW_ORGANIZATIONS * ENDPOINTS_MAX)
        await Endpoints(rival, steps.ctx, tenant).make(prompt.url)
        for number in range(5):
            await tenant.make_campaign(f"Morning {number}")
        await steps.begin()
        while len(prompt.messages) < 5:
            await prompt.until_arrived(len(prompt.messages) + 1)
            await steps.dispatcher.dispatch_once()
        assert SLOW_ORGANIZATIONS * ENDPOINTS_MAX <= slow.under_way < RUNNING_MAX
        slow.release.set()
        await steps.dispatcher.finish_attempts()


async def test_what_an_organisation_may_not_attempt_yet_is_left_to_other_workers(
    tenant: Tenant, rival: Rival, steps: Steps
) -> None:
    async with running_consumer() as slow:
        slow.otherwise = "held"
        await make_backlog(rival, steps, tenant, slow.url, 10)
        await steps.begin()
        ((claimed_count,),) = await rival.rows(
            "SELECT count(*) FROM webhook_deliveries WHERE next_attempt_at > %s", steps.ctx.clock.now()
        )
        assert claimed_count < 10 * ENDPOINTS_MAX
        await slow.until_arrived(claimed_count)
        second = Steps(steps.ctx)
        await second.begin()
        await slow.until_arrived(claimed_count + ENDPOINTS_MAX)
        slow.release.set()
        for each in (steps, second):
            await each.dispatcher.finish_attempts()
