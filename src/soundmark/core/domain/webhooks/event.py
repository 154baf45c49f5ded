"""Events, and the message that each of them is sent as."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final, get_args

from soundmark.core.domain.tenancy.audit import AuditAction
from soundmark.core.domain.tenancy.scope import ActorType
from soundmark.kit.text.timestamps import format_timestamp

EVENT_PREFIX: Final = "evn_"
TEST_TYPE: Final = "webhook.test"

# Instead of these audit actions, each of their Codes has an event of its own.
_BULK_ACTIONS: Final = frozenset({"code.batch_issued", "code.batch_revoked"})
_WITHOUT_AUDIT_ENTRY: Final = frozenset(
    {"code.expired", "quota.threshold_reached", "support.ticket_status_changed", TEST_TYPE}
)
# Contract, section 9, "Event types".
EVENT_TYPES: Final[frozenset[str]] = (frozenset(get_args(AuditAction)) - _BULK_ACTIONS) | _WITHOUT_AUDIT_ENTRY


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """An event of an organisation. `data` is a JSON object: the metadata of the audit entry, or the facts instead."""

    organization_id: str
    id: str
    project_id: str | None
    type: str
    actor_type: ActorType
    actor_id: str
    data: str
    created_at: datetime


def render_body(event: WebhookEvent) -> bytes:
    """Return the message of an event, which is the same bytes in every attempt, in every replay and when it is read.

    Source: contract, section 9, "Message".
    """
    message = {
        "type": event.type,
        "timestamp": format_timestamp(event.created_at),
        "data": {
            "organization_id": event.organization_id,
            "project_id": event.project_id,
            "actor": {"type": event.actor_type, "id": event.actor_id},
            **json.loads(event.data),
        },
    }
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
