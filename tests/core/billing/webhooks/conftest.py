"""What the tests of the payment webhooks share."""

from collections.abc import AsyncIterator

import pytest
from support.api.core_client import Api
from support.billing.card_purchase import WEBHOOK_SECRET, CardPurchase, begin_purchase
from support.billing.local_purchase import LocalPurchase, begin_local_purchase
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def card(card: RunningSandbox, api: Api) -> RunningSandbox:
    """The card provider, whose webhook secret Core knows too."""
    assert (await put_setting(api, "card_webhook_secret", WEBHOOK_SECRET)).status == 200
    return card


@pytest.fixture
async def work(
    database_url: Secret, card: RunningSandbox, local: RunningSandbox, clock: FakeClock
) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    urls = {"CARD_API_URL": card.settings()["CARD_API_URL"], "LOCAL_API_URL": local.settings()["LOCAL_API_URL"]}
    async with make_worker(database_url, clock, **urls) as ctx:
        yield ctx


@pytest.fixture
async def purchase(tenant: Tenant, rival: Rival, card: RunningSandbox) -> CardPurchase:
    """A purchase by card that was paid, and that Core knows nothing about yet."""
    return await begin_purchase(tenant, rival, card)


@pytest.fixture
async def local_purchase(tenant: Tenant, rival: Rival, local: RunningSandbox) -> LocalPurchase:
    """A payment at the local provider that succeeded, and that Core knows nothing about yet."""
    return await begin_local_purchase(tenant, rival, local)
