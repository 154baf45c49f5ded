"""What a caller can ask for, beyond an id or two: what to issue, and which records to list or report."""

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from soundmark_sdk import timestamps
from soundmark_sdk.client.records import Status
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.records import Intent
from soundmark_sdk.shapes import canonicalize_intent
from soundmark_sdk.strict_json import JsonValue


class Unchanged(enum.Enum):
    """The default of members that are not sent."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED


@dataclass(frozen=True, slots=True, kw_only=True)
class IssueRequest:
    """A Code to issue, for `codes.issue` and `codes.issue_batch`.

    Without `organization_id` and `project_id` it is issued for those of the client or its API key. With
    `audience_integration_id` that integration measures its audience.

    Source: API v1, "Codes".
    """

    issuer: str
    expires_at: datetime
    intent: Intent
    campaign_id: str | None = None
    audience_integration_id: str | None = None
    organization_id: str | None = None
    project_id: str | None = None

    def make_document(self) -> dict[str, Any]:
        """Return the JSON object of the request without its tenant; equal requests return equal objects.

        Raises: ValueError for an intent that has no canonical form or is too large, and for a time without a zone.
        """
        intent: JsonValue = {"type": self.intent.type, "action": self.intent.action, "resource": self.intent.resource}
        try:
            canonicalize_intent(intent)
        except Unverifiable:
            raise ValueError(
                "The intent cannot be written as canonical JSON of at most 16 KiB and 32 levels."
            ) from None
        document: dict[str, Any] = {}
        if self.campaign_id is not None:
            document["campaign_id"] = self.campaign_id
        document |= {"issuer": self.issuer, "expires_at": write_time(self.expires_at), "intent": intent}
        if self.audience_integration_id is not None:
            document["audience"] = {"enabled": True, "integration_id": self.audience_integration_id}
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFilters:
    """The Codes to list: those that match every filter. `created_to` is exclusive.

    The address of a Code is its intent's `resource.url`. `address_prefix` is the text that it begins with, where the
    case of ASCII letters counts from the path on only.
    """

    project_id: str | None = None
    campaign_id: str | None = None
    status: Status | None = None
    issuer: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    address_prefix: str | None = None

    def make_query(self) -> dict[str, str | None]:
        """Return the parameters of the request."""
        return {
            "project_id": self.project_id,
            "campaign_id": self.campaign_id,
            "status": self.status,
            "issuer": self.issuer,
            "created_from": write_time(self.created_from),
            "created_to": write_time(self.created_to),
            "address_prefix": self.address_prefix,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOrder:
    """The order of a list of Codes: by the time of their issuance or expiry, the latest first or the earliest."""

    sort: Literal["issued_at", "expires_at"] = "issued_at"
    order: Literal["desc", "asc"] = "desc"

    def make_query(self) -> dict[str, str]:
        """Return the parameters of the request."""
        return {"sort": self.sort, "order": self.order}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilters:
    """The audit entries to list: those that match every filter. `to_at` is exclusive.

    `actor` is the subject id of a person or the id of an API key.
    """

    action: str | None = None
    actor: str | None = None
    from_at: datetime | None = None
    to_at: datetime | None = None

    def make_query(self) -> dict[str, str | None]:
        """Return the parameters of the request."""
        period = {"from": write_time(self.from_at), "to": write_time(self.to_at)}
        return {"action": self.action, "actor": self.actor, **period}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFilters:
    """The events to report: those that match every filter. `to_at` is exclusive.

    Without `from_at` the report begins where the retention does, without `to_at` it ends now.
    """

    from_at: datetime | None = None
    to_at: datetime | None = None
    campaign_id: str | None = None
    xr_id: str | None = None

    def make_period(self) -> dict[str, str | None]:
        """Return the parameters of the period alone."""
        return {"from": write_time(self.from_at), "to": write_time(self.to_at)}

    def make_query(self) -> dict[str, str | None]:
        """Return the parameters of the request."""
        return {**self.make_period(), "campaign_id": self.campaign_id, "xr_id": self.xr_id}


EVERYTHING: Final = ReportFilters()


def write_time(time: datetime | None) -> str | None:
    """Return a time as the wire writes it.

    Raises: ValueError for a time without a zone, because it is ambiguous.
    """
    if time is None:
        return None
    if time.utcoffset() is None:
        raise ValueError("A time must have a time zone.")
    return timestamps.write(time)


def write_value(value: str | datetime | None) -> str | None:
    """Return a value as the JSON of a request writes it: only a time changes.

    Raises: ValueError for a time without a zone.
    """
    return write_time(value) if isinstance(value, datetime) else value
