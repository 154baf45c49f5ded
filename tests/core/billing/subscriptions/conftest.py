"""What the tests of subscriptions share."""

import pytest
from support.api.core_client import Api
from support.billing.subscriptions import Buyer, make_plans
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project."""
    return await make_tenant(api)


@pytest.fixture
async def buyer(tenant: Tenant, rival: Rival, work: Context) -> Buyer:
    """An organisation that buys and is granted subscriptions, and has a cell, to which they are carried."""
    await make_plans(rival)
    await tenant.give_cell(rival)
    return Buyer(tenant, rival, work)
