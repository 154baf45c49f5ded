"""Commands on the catalogue.

It belongs to no organisation, so the process log records each change instead of a tenant's audit log, without
references of the card provider.
"""

from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.catalog import (
    CONTRACT_PLAN_ID,
    SEEDED_PLAN_IDS,
    Catalog,
    Offer,
    OfferTerms,
    PaymentProvider,
    Plan,
    PlanTerms,
    ProviderName,
)
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.problems import PlanNotFound
from soundmark.core.steps.subscriptions import REFRESH_PLAN
from soundmark.core.store.billing import catalog_lists, offers, plans, providers
from soundmark.kit.http.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx

READ_PRICE: Final = "read_card_price"

_log: Final = structlog.get_logger()


async def read_catalog(ctx: Context) -> Catalog:
    """Return the whole catalogue as of one moment.

    Source: contract, section 7, catalogue.
    """
    async with ctx.db.snapshot(tenant=EVERY_TENANT) as tx:
        return Catalog(
            providers=await providers.list_all(tx),
            plans=await plans.list_all(tx),
            offers=await offers.list_all(tx),
            audience_contracts=await catalog_lists.list_audience_contracts(tx),
            accounting_customers=await catalog_lists.list_accounting_customers(tx),
        )


async def put_provider(ctx: Context, user: User, name: ProviderName, *, enabled: bool) -> PaymentProvider:
    """Put the offers of a payment provider on sale, or take them off.

    Subscriptions and pending checkouts stay as they are.

    Source: contract, section 7, catalogue.
    """
    async with ctx.db.transaction() as tx:
        provider = await providers.update_enabled(tx, name, enabled=enabled, now=ctx.clock.now())
    _log.info("payment_provider_changed", provider=name, enabled=enabled, subject_id=user.subject_id)
    return provider


async def put_plan(ctx: Context, user: User, plan_id: str, terms: PlanTerms) -> Plan:
    """Make a plan, or change one that exists.

    A new quota applies to everybody who has the plan: to Codes from the commit on, to Audience by a job.

    Raises: ValidationFailed for another product than the plan has, and for a seeded plan that would become inactive.
    Source: contract, section 7, catalogue.
    """
    if plan_id in SEEDED_PLAN_IDS and not terms.active:
        raise _refuse("active", "must be true: this plan is always active")
    async with ctx.db.transaction() as tx:
        plan = await plans.insert(tx, plan_id, terms, now=ctx.clock.now())
        if plan is None:
            plan = await _change_plan(ctx, tx, plan_id, terms)
    _log.info(
        "plan_changed",
        plan_id=plan_id,
        product=plan.product,
        monthly_quota=plan.monthly_quota,
        active=plan.active,
        subject_id=user.subject_id,
    )
    return plan


async def _change_plan(ctx: Context, tx: Tx, plan_id: str, terms: PlanTerms) -> Plan:
    stored = await plans.lock(tx, plan_id)
    assert stored is not None, "its id is taken, and no plan is ever deleted"
    if stored.product != terms.product:
        raise _refuse("product", f"must stay {stored.product}")
    plan = await plans.update(tx, plan_id, terms, now=ctx.clock.now())
    if plan.monthly_event_quota != stored.monthly_event_quota:
        await ctx.queue.defer(tx, REFRESH_PLAN, lock=f"{REFRESH_PLAN}:{plan_id}", plan_id=plan_id)
    return plan


async def put_offer(ctx: Context, user: User, offer_id: str, terms: OfferTerms) -> Offer:
    """Make an offer, or change one that exists. Checkouts keep the terms under which they were made.

    A job asks the card provider what the price of a card offer is, for display.

    Raises: PlanNotFound; ValidationFailed for the plan of contracts, and for another plan or provider than the offer
        has.
    Source: API v1, "Billing", audience contract rules; contract, section 7, catalogue.
    """
    if terms.plan_id == CONTRACT_PLAN_ID:
        raise _refuse("plan_id", "must name another plan: this one is granted by contract only")
    async with ctx.db.transaction() as tx:
        if await plans.find(tx, terms.plan_id) is None:
            raise PlanNotFound
        offer = await offers.insert(tx, offer_id, terms, now=ctx.clock.now())
        if offer is None:
            offer = await _change_offer(ctx, tx, offer_id, terms)
        if offer.price_reference is not None:
            await ctx.queue.defer(tx, READ_PRICE, lock=f"{READ_PRICE}:{offer_id}", offer_id=offer_id)
    _log.info(
        "offer_changed",
        offer_id=offer_id,
        plan_id=offer.plan_id,
        provider=offer.provider,
        active=offer.active,
        subject_id=user.subject_id,
    )
    return offer


async def _change_offer(ctx: Context, tx: Tx, offer_id: str, terms: OfferTerms) -> Offer:
    stored = await offers.lock(tx, offer_id)
    assert stored is not None, "its id is taken, and no offer is ever deleted"
    if stored.provider != terms.provider:
        raise _refuse("provider", f"must stay {stored.provider}")
    if stored.plan_id != terms.plan_id:
        raise _refuse("plan_id", f"must stay {stored.plan_id}")
    return await offers.update(tx, offer_id, terms, now=ctx.clock.now())


def _refuse(member: str, message: str) -> ValidationFailed:
    return ValidationFailed(errors=(FieldError("body", f"/{member}", message),))
