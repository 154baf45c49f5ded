"""What a caller wants of the service, where it is more than an id or two."""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from soundmark_sdk import timestamps
from soundmark_sdk.client.records import Status
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.records import Intent
from soundmark_sdk.shapes import canonical_intent
from soundmark_sdk.strict_json import JsonValue


class Unchanged(enum.Enum):
    """What stands for a member that is not sent."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A Code that is to be issued: what `codes.issue` and `issue_batch` take.

    Without `organization_id` and `project_id` it is issued where the client or its server key belongs. With
    `audience_integration_id` its audience is measured through that integration.

    Source: API v1, "Codes".
    """

    issuer: str
    expires_at: datetime
    intent: Intent
    campaign_id: str | None = None
    audience_integration_id: str | None = None
    organization_id: str | None = None
    project_id: str | None = None

    def document(self) -> dict[str, Any]:
        """Return the request's JSON object but for its tenant; the same wish always returns the same.

        Raises: ValueError for an intent that has no canonical form or is too large, and for a time without a zone.
        """
        intent: JsonValue = {"type": self.intent.type, "action": self.intent.action, "resource": self.intent.resource}
        try:
            canonical_intent(intent)
        except Unverifiable:
            raise ValueError(
                "The intent cannot be written as canonical JSON of at most 16 KiB and 32 levels."
            ) from None
        document: dict[str, Any] = {}
        if self.campaign_id is not None:
            document["campaign_id"] = self.campaign_id
        document |= {"issuer": self.issuer, "expires_at": moment(self.expires_at), "intent": intent}
        if self.audience_integration_id is not None:
            document["audience"] = {"enabled": True, "integration_id": self.audience_integration_id}
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFilters:
    """Which Codes a list is to have: all that is given must hold; `created_to` is not included."""

    project_id: str | None = None
    campaign_id: str | None = None
    status: Status | None = None
    issuer: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None

    def query(self) -> dict[str, str | None]:
        """Return the parameters of the request."""
        return {
            "project_id": self.project_id,
            "campaign_id": self.campaign_id,
            "status": self.status,
            "issuer": self.issuer,
            "created_from": moment(self.created_from),
            "created_to": moment(self.created_to),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilters:
    """Which audit entries are wanted: all that is given must hold; `to_at` is not included.

    `actor` is a person's subject id or a server key's id.
    """

    action: str | None = None
    actor: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None

    def query(self) -> dict[str, str | None]:
        """Return the parameters of the request."""
        return {"action": self.action, "actor": self.actor, "from": moment(self.from_at), "to": moment(self.to_at)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFilters:
    """What a report is to be about: all that is given must hold; `to_at` is not included.

    Without `from_at` it begins with the start of retention, without `to_at` it ends now.
    """

    from_at: datetime | None = None
    to_at: datetime | None = None
    campaign_id: str | None = None
    xr_id: str | None = None

    def period(self) -> dict[str, str | None]:
        """Return the parameters that say when."""
        return {"from": moment(self.from_at), "to": moment(self.to_at)}

    def query(self) -> dict[str, str | None]:
        """Return the parameters of the request."""
        return {**self.period(), "campaign_id": self.campaign_id, "xr_id": self.xr_id}


EVERYTHING: Final = ReportFilters()


def moment(instant: datetime | None) -> str | None:
    """Return a time as the wire writes it.

    Raises: ValueError for a time without a zone: nobody could tell when it is.
    """
    if instant is None:
        return None
    if instant.utcoffset() is None:
        raise ValueError("A time must have a time zone.")
    return timestamps.write(instant)


def writable(value: str | datetime | None) -> str | None:
    """Return what stands in the JSON of a request: a time as the wire writes it, anything else as it is.

    Raises: ValueError for a time without a zone.
    """
    return moment(value) if isinstance(value, datetime) else value
