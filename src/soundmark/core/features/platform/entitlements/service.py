"""Entitlements that an operator gives an organisation: Codes to issue, and events to measure."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.core.context import Context
from soundmark.core.domain.billing.catalog import CONTRACT_PLAN_ID
from soundmark.core.domain.tenancy.scope import PLATFORM
from soundmark.core.problems import ContractReferenceConflict
from soundmark.core.steps import audit
from soundmark.core.steps.contracts import ContractTerms, activate_contract
from soundmark.core.steps.entitlement import entitle_to_issue
from soundmark.core.store.billing import subscriptions
from soundmark.core.store.tenancy import organizations
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import may_be_id
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import EntitledMode


class EntitleRefused(Exception):
    """The organisation cannot be entitled; the message is for the operator."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What an operator gives an organisation, until `ends_at` or for good; at least one of the two quotas.

    `monthly_event_quotas` has a quota for each mode in which the organisation may measure.
    """

    monthly_code_quota: int | None
    monthly_event_quotas: dict[EntitledMode, int]
    ends_at: datetime | None


async def entitle(ctx: Context, organization_id: str, grant: Grant) -> None:
    """Give an organisation a grant in one transaction, which replaces earlier grants of the same kind.

    A quota of Codes is the organisation's floor, instead of the Starter plan's. A quota of events is a contract, like
    one that a platform administrator makes. Its audit log names each entitlement. Issuance uses the new quota from the
    commit on; a job tells Audience.

    Raises: EntitleRefused for an unknown organisation, or one that is being deleted, and if another organisation has
        the reference of the contract.
    Source: API v1, "Billing", audience contracts.
    """
    if not may_be_id(organization_id):
        raise EntitleRefused(f"there is no organisation {organization_id!r}")
    async with ctx.db.transaction(tenant=organization_id) as tx:
        if not await organizations.hold_open(tx, organization_id):
            raise EntitleRefused(f"there is no organisation {organization_id}, or it is being deleted")
        if grant.monthly_code_quota is not None:
            await entitle_to_issue(
                ctx,
                tx,
                organization_id,
                monthly_code_quota=grant.monthly_code_quota,
                ends_at=grant.ends_at,
                actor=PLATFORM,
            )
        for mode, monthly_event_quota in grant.monthly_event_quotas.items():
            await _entitle_to_measure(
                ctx, tx, organization_id, _terms(organization_id, mode, monthly_event_quota, grant)
            )


def _terms(organization_id: str, mode: EntitledMode, monthly_event_quota: int, grant: Grant) -> ContractTerms:
    return ContractTerms(
        reference=f"operator-{mode}-{organization_id}",
        plan_id=CONTRACT_PLAN_ID,
        mode=mode,
        monthly_quota=monthly_event_quota,
        ends_at=grant.ends_at,
    )


async def _entitle_to_measure(ctx: Context, tx: Tx, organization_id: str, terms: ContractTerms) -> None:
    await subscriptions.lock_all(tx, organization_id)
    now = ctx.clock.now()
    try:
        changed = await activate_contract(ctx, tx, organization_id, terms, now=now)
    except ContractReferenceConflict:
        raise EntitleRefused(f"another organisation has the contract reference {terms.reference}") from None
    await audit.record_as(
        tx,
        PLATFORM,
        ctx.entropy,
        "billing.entitlement_changed",
        organization_id=organization_id,
        now=now,
        product="audience",
        mode=terms.mode,
        monthly_event_quota=terms.monthly_quota,
        ends_at=terms.ends_at and format_timestamp(terms.ends_at),
        revision=None if changed.entitlement is None else changed.entitlement.revision,
    )
