"""Entitlements that an operator gives an organisation: Codes to issue, and events to measure."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.scope import Actor
from soundmark.core.steps.entitlement import entitle_to_issue, entitle_to_measure
from soundmark.core.store.tenancy import organizations
from soundmark.kit.text.ids import may_be_id
from soundmark.wire.shape import EntitledMode

_OPERATOR = Actor("platform", "operator")


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

    Its audit log names each entitlement. Issuance uses the new quota from the commit on; a job tells Audience.

    Raises: EntitleRefused for an unknown organisation, or one that is being deleted.
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
                actor=_OPERATOR,
            )
        for mode, monthly_event_quota in grant.monthly_event_quotas.items():
            await entitle_to_measure(
                ctx,
                tx,
                organization_id,
                mode,
                monthly_event_quota=monthly_event_quota,
                ends_at=grant.ends_at,
                actor=_OPERATOR,
            )
