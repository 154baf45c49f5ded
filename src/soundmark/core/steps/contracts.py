"""Contracts: subscriptions that an operator grants for measuring, without a payment."""

from dataclasses import dataclass, replace
from datetime import datetime

from soundmark.core.context import Context
from soundmark.core.domain.audience.integration import Entitlement
from soundmark.core.domain.billing.subscription import SUBSCRIPTION_PREFIX, Subscription, find_next_status
from soundmark.core.problems import ContractReferenceConflict
from soundmark.core.steps.entitlement import refresh_entitlement
from soundmark.core.store.billing import references, subscriptions
from soundmark.kit.http.responses.problems import NotFound
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import mint
from soundmark.wire.shape import EntitledMode


@dataclass(frozen=True, slots=True)
class ContractTerms:
    """What an operator grants.

    `monthly_quota` is a quota in place of the plan's. `ends_at` is None for a contract without an end.
    """

    reference: str
    plan_id: str
    mode: EntitledMode
    monthly_quota: int | None
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class ChangedContract:
    """A contract as it is now.

    `entitlement` follows from it, None if there never was one. `replaced_id` is the contract that it has replaced.
    """

    subscription: Subscription
    entitlement: Entitlement | None
    replaced_id: str | None


async def activate_contract(
    ctx: Context, tx: Tx, organization_id: str, terms: ContractTerms, *, now: datetime
) -> ChangedContract:
    """Make a contract the only active one of its mode, in one step with the end of the one before.

    A contract that exists keeps its mode, and is reactivated if it has ended. If `terms.ends_at` is past, it expires at
    once. The caller holds the organisation open, and has taken `subscriptions.lock_all`. Lock order: docs/locks.md.

    Raises: ContractReferenceConflict if another organisation has the reference.
    """
    current = await _find_contract(tx, organization_id, terms.reference)
    known = current or await _make_contract(ctx, tx, organization_id, terms, now=now)
    assert known.audience_mode is not None, "a contract is for measuring"
    replaced_id = await subscriptions.update_contract_cancelled(
        tx, organization_id, known.audience_mode, but_id=known.id, now=now
    )
    status = find_next_status(None if current is None else current.status, "contract_activated", is_closing=False)
    if terms.ends_at is not None and terms.ends_at <= now:
        status = find_next_status(status, "period_over", is_closing=False)
    assert status is not None, "a contract can always be activated"
    changed = replace(
        known,
        plan_id=terms.plan_id,
        status=status,
        current_period_end=terms.ends_at,
        paid_through=terms.ends_at,
        monthly_quota=terms.monthly_quota,
        updated_at=now,
    )
    entitlement = await _store_contract(ctx, tx, current, changed, is_open=True, now=now)
    return ChangedContract(changed, entitlement, replaced_id)


async def cancel_contract(
    ctx: Context, tx: Tx, organization_id: str, terms: ContractTerms, *, is_open: bool, now: datetime
) -> ChangedContract:
    """Cancel a contract. A cancelled one stays so.

    The caller holds the organisation, and has taken `subscriptions.lock_all`. Lock order: docs/locks.md.

    Raises: NotFound if nobody has the reference; ContractReferenceConflict if another organisation has it.
    """
    current = await _find_contract(tx, organization_id, terms.reference)
    if current is None:
        raise NotFound("This organisation has no contract with this reference.")
    status = find_next_status(current.status, "contract_cancelled", is_closing=not is_open)
    assert status is not None, "a contract can always be cancelled"
    changed = replace(
        current,
        plan_id=terms.plan_id,
        status=status,
        current_period_end=terms.ends_at,
        monthly_quota=None,
        updated_at=now,
    )
    entitlement = await _store_contract(ctx, tx, current, changed, is_open=is_open, now=now)
    return ChangedContract(changed, entitlement, None)


async def _find_contract(tx: Tx, organization_id: str, reference: str) -> Subscription | None:
    owner = await references.find(tx, "contract", reference)
    if owner is not None and owner.organization_id != organization_id:
        raise ContractReferenceConflict
    return await subscriptions.find_contract(tx, organization_id, reference)


async def _make_contract(
    ctx: Context, tx: Tx, organization_id: str, terms: ContractTerms, *, now: datetime
) -> Subscription:
    """Return a new contract, which is not stored yet, and make the organisation the owner of its reference.

    Raises: ContractReferenceConflict.
    """
    contract_id = mint(ctx.entropy, SUBSCRIPTION_PREFIX)
    owner = await references.insert_or_find(
        tx, "contract", terms.reference, organization_id=organization_id, subject_id=contract_id
    )
    if owner.organization_id != organization_id:
        raise ContractReferenceConflict
    return Subscription(
        organization_id=organization_id,
        id=contract_id,
        plan_id=terms.plan_id,
        product="audience",
        audience_mode=terms.mode,
        provider="contract",
        status="active",
        current_period_end=terms.ends_at,
        paid_through=terms.ends_at,
        cancel_at_period_end=False,
        monthly_quota=terms.monthly_quota,
        checkout_id=None,
        provider_reference=None,
        contract_reference=terms.reference,
        last_event_at=None,
        created_at=now,
        updated_at=now,
    )


async def _store_contract(
    ctx: Context, tx: Tx, before: Subscription | None, after: Subscription, *, is_open: bool, now: datetime
) -> Entitlement | None:
    if before is None:
        await subscriptions.insert(tx, after)
    else:
        await subscriptions.update(tx, after)
    assert after.audience_mode is not None, "a contract is for measuring"
    return await refresh_entitlement(ctx, tx, after.organization_id, after.audience_mode, is_open=is_open, now=now)
