"""The types of events that endpoints choose among, grouped by what they are about, and an example of a message."""

import json
from collections.abc import Collection
from itertools import groupby
from typing import Any, Final

from soundmark.console.audit_actions import ACTIONS
from soundmark.console.visit import Visit

# A batch is one entry of the log, and one event for each of its Codes.
_RECORDED_ONLY: Final = frozenset({"code.batch_issued", "code.batch_revoked"})
_SENT_ONLY: Final = frozenset(
    {"code.expired", "quota.threshold_reached", "support.ticket_status_changed", "webhook.test"}
)
EVENT_TYPES: Final = tuple(sorted(({*ACTIONS} - _RECORDED_ONLY) | _SENT_ONLY))
_EXAMPLE_TYPE: Final = "code.issued"


def group_types(visit: Visit, chosen: Collection[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the types and their names by the name of their resource, with a later Core's that an endpoint chose."""
    named = [(each, name_type(visit, each)) for each in sorted({*EVENT_TYPES, *chosen})]
    return [
        (_name_resource(visit, resource), list(types))
        for resource, types in groupby(named, lambda each: each[0].partition(".")[0])
    ]


def write_example(visit: Visit) -> str:
    """Return the body of a message as this organisation would receive it."""
    data: dict[str, Any] = {
        "organization_id": visit.organization_id,
        "project_id": "prj_…",
        "actor": {"type": "user", "id": visit.signed_in.subject},
        "xr_id": "xr_…",
    }
    message = {"type": _EXAMPLE_TYPE, "timestamp": "2026-11-27T20:15:00.000Z", "data": data}
    return json.dumps(message, ensure_ascii=False, indent=2)


def name_type(visit: Visit, event_type: str) -> str:
    """Return the name of a type, empty for one that only a later Core knows."""
    for key in (f"webhooks.type.{event_type}", f"audit_log.action.{event_type}"):
        if visit.language.knows(key):
            return visit.say(key)
    return ""


def _name_resource(visit: Visit, resource: str) -> str:
    key = f"webhooks.resource.{resource}"
    return visit.say(key) if visit.language.knows(key) else resource
