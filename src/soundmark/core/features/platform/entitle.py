"""An operator's entitlement to measure, for one organisation."""

from datetime import datetime

from soundmark.core.domain.audience import EntitledMode, Entitlement
from soundmark.core.domain.scope import Actor
from soundmark.core.steps.entitlement import entitle as entitle_in
from soundmark.core.store import organizations
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.ids import may_be_id
from soundmark.kit.jobs import Queue
from soundmark.kit.postgres import Database


class EntitleRefused(Exception):  # noqa: N818 - named for what was found
    """Nobody is there to be entitled; the message says so, for an operator."""


async def entitle(  # noqa: PLR0913 - with what, whom, to what
    db: Database,
    clock: Clock,
    entropy: Entropy,
    organization_id: str,
    mode: EntitledMode,
    *,
    monthly_event_quota: int,
    ends_at: datetime | None,
) -> Entitlement:
    """The organisation may measure so many events a month in the mode, until `ends_at` or without an end.

    What it might before is replaced. Its audit log tells, and Audience is told by a job.

    Raises: EntitleRefused for an organisation that is not there, or that is being deleted.
    Source: API v1, "Billing", audience contracts.
    """
    if not may_be_id(organization_id):
        raise EntitleRefused(f"there is no organisation {organization_id!r}")
    async with db.transaction(tenant=organization_id) as tx:
        if not await organizations.hold_open(tx, organization_id):
            raise EntitleRefused(f"there is no organisation {organization_id}, or it is being deleted")
        return await entitle_in(
            tx,
            Queue(),
            entropy,
            organization_id,
            mode,
            monthly_event_quota=monthly_event_quota,
            ends_at=ends_at,
            actor=Actor("platform", "operator"),
            now=clock.now(),
        )
