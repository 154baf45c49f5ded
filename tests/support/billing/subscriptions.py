"""Purchases, and what the card provider says of them, as the reconciliation would hand them on."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardInvoice, CardInvoiceLine, CardSubscription
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.domain.billing.subscription import Subscription
from soundmark.core.steps.subscriptions import apply_card, extend_prepaid
from soundmark.core.store.billing import checkouts
from soundmark.core.store.tenancy import organizations
from support.api.core_client import Answer
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

STUDIO, PLUS = "plan_codes_studio", "plan_audience_plus"  # 1,000 Codes, and 20,000 events, a month.
LARGE = "plan_codes_large"  # 5,000 Codes a month.
CONTRACT_PLAN = "plan_audience_contract"  # 5,000 events a month.
SOLD = {f"price_{plan_id}": plan_id for plan_id in (STUDIO, PLUS, LARGE)}


async def make_plans(rival: Rival) -> None:
    """Make the plans, each with an offer of both providers."""
    await rival.run(
        "INSERT INTO plans (id, name, product, monthly_code_quota, monthly_event_quota, active, updated_at)"
        " VALUES (%s, 'Codes Studio', 'codes', 1000, NULL, true, now()),"
        " (%s, 'Audience Plus', 'audience', NULL, 20000, true, now()),"
        " (%s, 'Codes Large', 'codes', 5000, NULL, true, now()) ON CONFLICT DO NOTHING",
        STUDIO,
        PLUS,
        LARGE,
    )
    for plan_id in (STUDIO, PLUS, LARGE):
        await rival.run(
            "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_status, updated_at)"
            " VALUES (%s, %s, 'card', true, %s, 'unknown', now()) ON CONFLICT DO NOTHING",
            f"offer_card_{plan_id}",
            plan_id,
            f"price_{plan_id}",
        )
        await rival.run(
            "INSERT INTO offers (id, plan_id, provider, active, country, currency, amount_minor, entitlement_months,"
            " updated_at) VALUES (%s, %s, 'local', true, 'TN', 'TND', 10555, 1, now()) ON CONFLICT DO NOTHING",
            f"offer_local_{plan_id}",
            plan_id,
        )


class Buyer:
    """An organisation whose checkouts are paid."""

    def __init__(self, tenant: Tenant, rival: Rival, ctx: Context) -> None:
        self.tenant, self.rival, self.ctx = tenant, rival, ctx
        self._count = 0
        self._plan_id = STUDIO

    @property
    def organization_id(self) -> str:
        return self.tenant.organization_id

    async def make_checkout(self, provider: str = "card", plan_id: str = STUDIO, *, months: int = 1) -> Checkout:
        """Insert a pending checkout."""
        self._count += 1
        self._plan_id = plan_id
        now = self.ctx.clock.now()
        is_card = provider == "card"
        checkout = Checkout(
            organization_id=self.organization_id,
            id=f"bco_{self._count:04}{self.organization_id[4:22]}",
            offer_id=f"offer_{provider}_{plan_id}",
            plan_id=plan_id,
            product="audience" if plan_id == PLUS else "codes",
            provider="card" if is_card else "local",
            status="pending",
            price_reference=f"price_{plan_id}" if is_card else None,
            amount_minor=None if is_card else 10555,
            currency=None if is_card else "TND",
            entitlement_months=None if is_card else months,
            key_digest=None,
            request_digest=None,
            attempts=0,
            provider_reference=None,
            subscription_reference=None,
            reads_begun=0,
            read_applied=0,
            rereads=0,
            reread_at=None,
            created_at=now,
            expires_at=now + timedelta(hours=24),
            completed_at=None,
            unpaid_at=None,
        )
        async with self.ctx.db.transaction(tenant=self.organization_id) as tx:
            await checkouts.insert(tx, checkout)
        return checkout

    async def apply(
        self,
        checkout: Checkout,
        state: CardSubscription,
        *,
        event_at: datetime | None = None,
    ) -> Subscription | None:
        """Apply what the provider says, as the reconciliation does."""
        async with self.ctx.db.transaction(tenant=self.organization_id) as tx:
            await organizations.hold_marker(tx, self.organization_id)
            locked = await checkouts.lock(tx, self.organization_id, checkout.id)
            assert locked is not None
            now = self.ctx.clock.now()
            found = await apply_card(self.ctx, tx, locked, state, sold=SOLD, event_at=event_at, now=now)
            await checkouts.update_completed(tx, locked, now=now)
        return found

    async def pay(self, checkout: Checkout) -> Subscription | None:
        """Complete a checkout of the local provider, as the reconciliation does."""
        async with self.ctx.db.transaction(tenant=self.organization_id) as tx:
            await organizations.hold_marker(tx, self.organization_id)
            locked = await checkouts.lock(tx, self.organization_id, checkout.id)
            assert locked is not None
            now = self.ctx.clock.now()
            period = await extend_prepaid(self.ctx, tx, locked, now=now)
            await checkouts.update_completed(tx, locked, now=now)
        return None if period is None else period.subscription

    async def buy_card(self, plan_id: str = STUDIO, **changes: Any) -> Subscription:
        """Buy a plan with a card; `changes` are what the provider says otherwise."""
        bought = await self.apply(await self.make_checkout("card", plan_id), self.state(**changes))
        assert bought is not None
        return bought

    async def buy_prepaid(self, plan_id: str = STUDIO, *, months: int = 1) -> Subscription:
        bought = await self.pay(await self.make_checkout("local", plan_id, months=months))
        assert bought is not None
        return bought

    def state(self, *, is_paid: bool = True, **changes: Any) -> CardSubscription:
        """Return what the provider says of an active subscription of a month, except for `changes`.

        It is of the plan of the last checkout. The latest invoice is of now, and for the period.
        """
        now = self.ctx.clock.now()
        active = CardSubscription(
            reference=f"sub_{self.organization_id[4:]}_{self._count}",
            status="active",
            customer="cus_of_a_test",
            prices=(f"price_{self._plan_id}",),
            current_period_end=now + timedelta(days=30),
            cancel_at_period_end=False,
            metadata={},
            latest_invoice=None,
        )
        state = replace(active, **changes)
        if "latest_invoice" in changes or state.current_period_end is None:
            return state
        line = CardInvoiceLine(
            subscription=state.reference,
            price=state.prices[0],
            is_credit=False,
            period_start=now,
            period_end=state.current_period_end,
        )
        invoice = CardInvoice(
            reference="in_of_a_test",
            status="paid" if is_paid else "open",
            subscription=state.reference,
            customer="cus_of_a_test",
            amount_paid_minor=10_555 if is_paid else 0,
            currency="TND",
            metadata={},
            created_at=now,
            lines=(line,),
        )
        return replace(state, latest_invoice=invoice)

    async def begin_closing(self) -> None:
        await self.rival.run(
            "UPDATE organizations SET deletion_requested_at = now() WHERE id = %s", self.organization_id
        )

    async def code_quota(self) -> int:
        """Return the quota with which a Code would be issued now."""
        usage = (await self.tenant.api.get("/v1/usage", params=self.tenant.query)).json
        quota: int = usage["codes"]["monthly_quota"]
        return quota

    async def entitlement(self, mode: str) -> tuple[int, datetime | None, int] | None:
        """Return the stored entitlement to a mode: quota, end and revision."""
        rows = await self.rival.rows(
            "SELECT monthly_event_quota, ends_at, revision FROM audience_entitlements"
            " WHERE organization_id = %s AND mode = %s",
            self.organization_id,
            mode,
        )
        return rows[0] if rows else None

    async def statuses(self) -> list[tuple[str, str]]:
        """Return provider and status of each subscription, oldest first."""
        return await self.rival.rows(
            "SELECT provider, status FROM subscriptions WHERE organization_id = %s ORDER BY created_at, id",
            self.organization_id,
        )

    async def put_contract(self, reference: str = "C-1", **changes: Any) -> Answer:
        """Put an active contract, except for `changes`, as the platform's administrator."""
        body = {"plan_id": CONTRACT_PLAN, "contract_reference": reference, "status": "active", **changes}
        path = f"/v1/billing/admin/audience-contracts/{self.organization_id}"
        return await self.tenant.api.call("PUT", path, json=body)
