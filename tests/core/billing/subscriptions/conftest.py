"""What the tests of subscriptions share."""

from collections.abc import AsyncIterator

import pytest
from support.api.core_client import Api
from support.api.core_settings import jobs_settings
from support.billing.subscriptions import Buyer, make_plans
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project."""
    return await make_tenant(api)


@pytest.fixture
async def work(database_url: Secret, measuring_url: str, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of a worker, with Audience."""
    ctx = make_job_context(jobs_settings(database_url, AUDIENCE_URL=measuring_url), clock=clock)
    await ctx.db.open()
    try:
        yield ctx
    finally:
        await ctx.cells.aclose()
        await ctx.db.close()


@pytest.fixture
async def buyer(tenant: Tenant, rival: Rival, work: Context) -> Buyer:
    """An organisation that buys and is granted subscriptions, and has a cell, to which they are carried."""
    await make_plans(rival)
    await tenant.give_cell(rival)
    return Buyer(tenant, rival, work)
