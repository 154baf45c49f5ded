"""The types of events that an endpoint may choose.

Source: contract, section 9, "Event types".
"""

from collections.abc import Collection
from typing import Final

from soundmark.console.audit_actions import ACTIONS

# A batch is one entry of the log, and one event for each of its Codes.
_RECORDED_ONLY: Final = frozenset({"code.batch_issued", "code.batch_revoked"})
_SENT_ONLY: Final = frozenset(
    {"code.expired", "quota.threshold_reached", "support.ticket_status_changed", "webhook.test"}
)
EVENT_TYPES: Final = tuple(sorted(({*ACTIONS} - _RECORDED_ONLY) | _SENT_ONLY))


def list_options(chosen: Collection[str]) -> list[tuple[str, str]]:
    """Return the types for boxes, with those of a later Core that an endpoint has chosen already."""
    return [(each, each) for each in sorted({*EVENT_TYPES, *chosen})]
