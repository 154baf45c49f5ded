"""The modes that an organisation may measure in, and how long each keeps events unless somebody says otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from soundmark.console.lookups import list_entitling
from soundmark.console.parts import read_part
from soundmark.console.visit import Visit

# By mode. Demo allows no more (API v1, "Limits"); the others keep enough to compare a month with the one before.
RETENTION_DAYS: Final[Mapping[str, int]] = {"demo": 14, "contract": 90, "self_service": 90}


@dataclass(frozen=True, slots=True)
class OfferedMode:
    """A mode, and whether the organisation has what it needs, as far as its subscriptions can be read."""

    name: str
    is_available: bool


async def list_modes(visit: Visit) -> list[OfferedMode]:
    """Return the modes of the form. Core judges what is sent."""
    subscriptions = await read_part(visit.core.subscriptions.page())
    if subscriptions is None:
        return [OfferedMode(name, is_available=True) for name in RETENTION_DAYS]
    sources = {each.provider for each in list_entitling(subscriptions.data) if each.product == "audience"}
    return [
        OfferedMode("demo", is_available=True),
        OfferedMode("contract", is_available="contract" in sources),
        OfferedMode("self_service", is_available=bool(sources - {"contract"})),
    ]


async def has_legacy_totals(visit: Visit) -> bool:
    """Return whether the project has daily totals from before XR v1, as far as they can be read."""
    report = await read_part(visit.core.audience.legacy_report())
    return report is not None and report.events > 0
