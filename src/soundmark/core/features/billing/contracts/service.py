"""The command on contracts."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, cast

import structlog

from soundmark.core.context import Context
from soundmark.core.domain.billing.catalog import AudienceContract, ContractStatus, Plan
from soundmark.core.domain.tenancy.scope import PLATFORM, User
from soundmark.core.problems import OrganizationNotFound, PlanNotFound
from soundmark.core.steps import audit
from soundmark.core.steps.contracts import ChangedContract, ContractTerms, activate_contract, cancel_contract
from soundmark.core.steps.tenancy import require_active_organization
from soundmark.core.store.billing import plans, subscriptions
from soundmark.core.store.tenancy import organizations
from soundmark.kit.http.responses.problems import FieldError, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp

_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ContractRequest:
    """What an administrator wants a contract to be."""

    plan_id: str
    reference: str
    status: Literal["active", "cancelled"]
    period_end: datetime | None

    def terms(self) -> ContractTerms:
        """Return the terms of the contract."""
        return ContractTerms(self.reference, self.plan_id, "contract", None, self.period_end)


async def put_audience_contract(
    ctx: Context, user: User, organization_id: str, request: ContractRequest
) -> AudienceContract:
    """Grant, change or cancel a contract of an organisation, and cancel the one that it replaces, in one transaction.

    A job carries the entitlement to Audience. Safe to repeat.

    Raises: OrganizationNotFound; PlanNotFound; ValidationFailed for a plan of Codes, and to activate, for a plan that
        is not active and an end that is past; ResourceDeletionInProgress and OrganizationSuspended, to activate;
        ContractReferenceConflict; NotFound, to cancel.
    Source: API v1, "Billing", audience contract rules; contract, section 7.
    """
    async with ctx.db.transaction(tenant=organization_id) as tx:
        standing = await organizations.hold_standing(tx, organization_id)
        if standing is None:
            raise OrganizationNotFound
        _judge_plan(await plans.find(tx, request.plan_id), request)
        await subscriptions.lock_all(tx, organization_id)
        now = ctx.clock.now()
        if request.status == "active":
            require_active_organization(standing)
            _judge_period_end(request.period_end, now)
            changed = await activate_contract(ctx, tx, organization_id, request.terms(), now=now)
        else:
            changed = await cancel_contract(
                ctx, tx, organization_id, request.terms(), is_open=standing.is_open, now=now
            )
        contract = _contract_of(changed)
        await _record(ctx, tx, changed, contract, now=now)
    _log.info(
        "audience_contract_changed",
        organization_id=organization_id,
        subscription_id=changed.subscription.id,
        plan_id=contract.plan_id,
        status=contract.status,
        subject_id=user.subject_id,
    )
    return contract


def _judge_plan(plan: Plan | None, request: ContractRequest) -> None:
    if plan is None:
        raise PlanNotFound
    if plan.product != "audience":
        raise ValidationFailed(errors=(FieldError("body", "/plan_id", "must name a plan of Audience"),))
    if request.status == "active" and not plan.active:
        raise ValidationFailed(errors=(FieldError("body", "/plan_id", "must name a plan that is active"),))


def _judge_period_end(period_end: datetime | None, now: datetime) -> None:
    if period_end is not None and period_end <= now:
        raise ValidationFailed(errors=(FieldError("body", "/period_end", "must be in the future"),))


def _contract_of(changed: ChangedContract) -> AudienceContract:
    subscription = changed.subscription
    assert subscription.contract_reference is not None, "a contract has a reference"
    assert subscription.status not in {"trialing", "past_due"}, "a contract is not paid for"
    return AudienceContract(
        organization_id=subscription.organization_id,
        plan_id=subscription.plan_id,
        contract_reference=subscription.contract_reference,
        status=cast("ContractStatus", subscription.status),
        period_end=subscription.current_period_end,
        updated_at=subscription.updated_at,
    )


async def _record(ctx: Context, tx: Tx, changed: ChangedContract, contract: AudienceContract, *, now: datetime) -> None:
    await audit.record_as(
        tx,
        PLATFORM,
        ctx.entropy,
        "billing.audience_contract_changed",
        organization_id=contract.organization_id,
        now=now,
        subscription_id=changed.subscription.id,
        plan_id=contract.plan_id,
        status=contract.status,
        period_end=contract.period_end and format_timestamp(contract.period_end),
        replaced_id=changed.replaced_id,
        revision=None if changed.entitlement is None else changed.entitlement.revision,
    )
