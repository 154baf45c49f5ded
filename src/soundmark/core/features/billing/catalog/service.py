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
    PriceFacts,
    ProviderName,
)
from soundmark.core.domain.tenancy.scope import User
from soundmark.core.features.billing.catalog.prices import ask_for_price, merge_price
from soundmark.core.problems import PlanNotFound
from soundmark.core.steps.subscriptions import REFRESH_PLAN
from soundmark.core.store.billing import catalog_lists, offers, plans, providers
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.transaction import Tx

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
    """Put the offers of a payment provider on sale, or withdraw them.

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

    The price of a card offer is asked for at the card provider, between two transactions. A process that dies in
    between has changed nothing. If the provider does not answer, the offer is saved all the same, and a job asks again.

    Raises: PlanNotFound; ValidationFailed for the plan of contracts, for another plan or provider than the offer has,
        and for an active offer whose price the provider cannot sell.
    Source: API v1, "Billing", audience contract rules; contract, section 7, catalogue and offers.
    """
    if terms.plan_id == CONTRACT_PLAN_ID:
        raise _refuse("plan_id", "must name another plan: this one is granted by contract only")
    price = PriceFacts(terms.currency, terms.amount_minor)
    if terms.price_reference is not None:
        async with ctx.db.snapshot() as tx:
            _judge_terms(await plans.find(tx, terms.plan_id), await offers.find(tx, offer_id), terms)
        price = await ask_for_price(ctx, offer_id, terms.price_reference)
        if terms.active and price.status == "missing":
            raise _refuse("price_reference", "must name an active, recurring price at the card provider")
    async with ctx.db.transaction() as tx:
        plan = await plans.find(tx, terms.plan_id)
        if plan is None:
            raise PlanNotFound
        offer = await offers.insert(tx, offer_id, terms, price, now=ctx.clock.now())
        if offer is None:
            offer = await _change_offer(ctx, tx, plan, offer_id, terms, price)
    _log.info(
        "offer_changed",
        offer_id=offer_id,
        plan_id=offer.plan_id,
        provider=offer.provider,
        active=offer.active,
        price_status=offer.price_status,
        subject_id=user.subject_id,
    )
    return offer


async def _change_offer(ctx: Context, tx: Tx, plan: Plan, offer_id: str, terms: OfferTerms, price: PriceFacts) -> Offer:
    stored = await offers.lock(tx, offer_id)
    assert stored is not None, "its id is taken, and no offer is ever deleted"
    _judge_terms(plan, stored, terms)
    if terms.price_reference is not None:
        price = merge_price(stored, terms.price_reference, price)
    return await offers.update(tx, offer_id, terms, price, now=ctx.clock.now())


def _judge_terms(plan: Plan | None, stored: Offer | None, terms: OfferTerms) -> None:
    """Raises: PlanNotFound; ValidationFailed."""
    if plan is None:
        raise PlanNotFound
    if stored is None:
        return
    if stored.provider != terms.provider:
        raise _refuse("provider", f"must stay {stored.provider}")
    if stored.plan_id != terms.plan_id:
        raise _refuse("plan_id", f"must stay {stored.plan_id}")


def _refuse(member: str, message: str) -> ValidationFailed:
    return ValidationFailed(errors=(FieldError("body", f"/{member}", message),))
