"""The question how much was measured."""

from dataclasses import dataclass
from datetime import date

from soundmark.audience.context import Context
from soundmark.audience.domain.integration import MODES, Mode
from soundmark.audience.store import event_months, integrations


@dataclass(frozen=True, slots=True)
class ModeUsage:
    """What one mode used in a month, and how many of its integrations are active now."""

    mode: Mode
    events: int
    active_integrations: int


async def read_usage(ctx: Context, organization_id: str, *, first_day: date) -> list[ModeUsage]:
    """What the organisation used in the month that begins with `first_day`, of every mode, as of one moment.

    Source: API v1, "Usage".
    """
    async with ctx.db.snapshot() as tx:
        events = await event_months.count_events(tx, organization_id, first_day=first_day)
        active = await integrations.count_unrevoked(tx, organization_id)
    return [ModeUsage(mode, events.get(mode, 0), active.get(mode, 0)) for mode in MODES]
