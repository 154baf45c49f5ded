"""A worker that makes draft invoices in the sandbox's accounting system."""

import datetime as dt
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.accounting import post_invoice
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.payment import VerifiedPayment
from soundmark.core.domain.billing.subscription import Subscription
from soundmark.core.features.billing.accounting import jobs
from soundmark.core.steps.invoices import schedule_invoice
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.job_queue import Later

# The sandbox has three third parties of entity 1; these two are added.
ENTITY: Final = 3
THIRDPARTY_ID: Final = 4
OTHER_THIRDPARTY_ID: Final = 5
SUBSCRIPTION_ID: Final = "bsu_" + "s" * 22
PAYMENT_KEY: Final = "in_the-reference-of-a-payment"


@pytest.fixture
async def books(outside: RunningSandbox) -> RunningSandbox:
    """An accounting system that keeps millimes, with two third parties of our entity."""
    await outside.control("/accounting/settings", decimals=3)
    for number in (THIRDPARTY_ID, OTHER_THIRDPARTY_ID):
        added = await outside.control("/accounting/thirdparties", name="Radio Nordlicht", entity=ENTITY)
        assert added["id"] == str(number)
    return outside


def environ_of(books: RunningSandbox) -> dict[str, str]:
    """Return the settings of a process that uses this accounting system, without their prefix."""
    settings = {name: value for name, value in books.settings().items() if name.startswith("ACCOUNTING")}
    return settings | {"ACCOUNTING_ENTITY_ID": str(ENTITY), "ACCOUNTING_ENABLE_INVOICE_SYNC": "true"}


@pytest.fixture
async def configured(api: Api, books: RunningSandbox, rival: Rival) -> RunningSandbox:
    """The accounting system of the platform."""
    await put_setting(api, "accounting_api_key", books.secret("ACCOUNTING_API_KEY"))
    await rival.run(
        "INSERT INTO platform_configuration (name, value, updated_at) VALUES ('accounting_base_url', %s, now())",
        f'"{books.settings()["ACCOUNTING_BASE_URL"]}"',
    )
    return books


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock, books: RunningSandbox) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    async with make_worker(database_url, clock, **environ_of(books)) as made:
        yield made


async def add_draft(
    books: RunningSandbox, ref_ext: str | None, *, thirdparty_id: int = THIRDPARTY_ID, **changes: Any
) -> None:
    """Add a draft of 10.555 dinars that somebody else made; `changes` are as in `post_invoice`."""
    made = await post_invoice(books, entity=ENTITY, socid=thirdparty_id, ref_ext=ref_ext, **changes)
    assert made.status_code == 200


class RolledBack(Exception):
    """What made a transaction of the tests roll back."""


@dataclass(frozen=True)
class Customer:
    """An organisation with a third party and a subscription, whose payments are verified."""

    tenant: Tenant
    rival: Rival

    @property
    def subscription(self) -> Subscription:
        now = self.tenant.api.clock.now()
        return Subscription(
            organization_id=self.tenant.organization_id,
            id=SUBSCRIPTION_ID,
            plan_id="plan_codes_starter",
            product="codes",
            audience_mode=None,
            provider="local",
            status="active",
            current_period_end=now + dt.timedelta(days=30),
            paid_through=now + dt.timedelta(days=30),
            cancel_at_period_end=False,
            monthly_quota=None,
            checkout_id="bco_" + "c" * 22,
            provider_reference=None,
            contract_reference=None,
            last_event_at=None,
            created_at=now,
            updated_at=now,
        )

    async def pay(self, ctx: Context, *, is_rolled_back: bool = False, **changes: Any) -> str | None:
        """Schedule the draft of a payment of 10.555 dinars; return the draft's id, or None."""
        now = ctx.clock.now()
        given: dict[str, Any] = {
            "checkout_id": "bco_" + "c" * 22,
            "key": PAYMENT_KEY,
            "amount_minor": 10_555,
            "currency": "TND",
            "plan_name": "Codes Studio",
            "period_start": dt.datetime(2026, 11, 20, tzinfo=dt.UTC),
            "period_end": dt.datetime(2026, 12, 20, tzinfo=dt.UTC),
        }
        async with ctx.db.transaction(tenant=self.tenant.organization_id) as tx:
            await schedule_invoice(ctx, tx, self.subscription, VerifiedPayment(**given | changes), now=now)
            if is_rolled_back:
                raise RolledBack
        rows = await self.rival.rows("SELECT id FROM accounting_outbox ORDER BY created_at DESC, id DESC LIMIT 1")
        return rows[0][0] if rows else None

    async def draft(self, ctx: Context, **changes: Any) -> str:
        """Do the same for a payment that has a draft."""
        outbox_id = await self.pay(ctx, **changes)
        assert outbox_id is not None, "a draft is scheduled"
        return outbox_id

    async def work(self, ctx: Context, outbox_id: str) -> dt.datetime | None:
        """Run the job and return when it must run again, or None."""
        try:
            await jobs.make_draft(ctx, organization_id=self.tenant.organization_id, outbox_id=outbox_id)
        except Later as later:
            return later.at
        return None

    async def read(self, outbox_id: str) -> tuple[str, int, int | None]:
        """Return the draft's status, attempts and invoice id."""
        rows = await self.rival.rows(
            "SELECT status, attempts, invoice_id FROM accounting_outbox WHERE id = %s", outbox_id
        )
        found: tuple[str, int, int | None] = rows[0]
        return found


@pytest.fixture
async def customer(tenant: Tenant, rival: Rival) -> Customer:
    """An organisation with a third party and a subscription."""
    now = tenant.api.clock.now()
    await rival.run(
        "INSERT INTO accounting_customers (organization_id, thirdparty_id, updated_at) VALUES (%s, %s, %s)",
        tenant.organization_id,
        THIRDPARTY_ID,
        now,
    )
    await rival.run(
        "INSERT INTO subscriptions (organization_id, id, plan_id, product, provider, status, current_period_end,"
        " paid_through, cancel_at_period_end, created_at, updated_at)"
        " VALUES (%s, %s, 'plan_codes_starter', 'codes', 'local', 'active', %s, %s, false, %s, %s)",
        tenant.organization_id,
        SUBSCRIPTION_ID,
        now + dt.timedelta(days=30),
        now + dt.timedelta(days=30),
        now,
        now,
    )
    return Customer(tenant, rival)
