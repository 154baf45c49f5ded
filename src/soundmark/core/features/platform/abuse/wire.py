"""The request and response shapes of abuse reports."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints, model_validator

from soundmark.core.domain.platform.abuse_report import (
    CONTACT_CHARS_MAX,
    TEXT_CHARS_MAX,
    AbuseCategory,
    AbuseStatus,
    OpenedReport,
)
from soundmark.wire.shape import BroadcastToken, Timestamp, Wire, XrId


class CreateAbuseReport(Wire):
    """What is wrong with a Code, which is named by its broadcast token or by its id."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"token": "brd_bm9yZGxpY2h0LWV4", "category": "malware", "text": "It offers a fake update."}],
            "oneOf": [{"required": ["token"]}, {"required": ["xr_id"]}],
        }
    )

    # These two cannot be null; the factories only make them optional and are never read.
    token: Annotated[BroadcastToken, Field(default_factory=str)]
    xr_id: Annotated[XrId, Field(default_factory=str)]
    category: AbuseCategory
    text: Annotated[str, StringConstraints(max_length=TEXT_CHARS_MAX), Field(repr=False)]
    contact: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=CONTACT_CHARS_MAX)] | None,
        Field(description="How to reach the sender. Deleted with the text.", repr=False),
    ] = None

    @model_validator(mode="after")
    def _require_one_name(self) -> "CreateAbuseReport":
        if len({"token", "xr_id"} & self.model_fields_set) != 1:
            raise ValueError("must name the Code by exactly one of token and xr_id")
        return self


class ReceivedReport(Wire):
    """The report was received. The answer is the same whether the Code exists or not."""


class PutAbuseReport(Wire):
    """The state of a report, and a note on it, which replaces the previous one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "closed", "note": "Suspended."}]})

    status: AbuseStatus
    note: Annotated[
        Annotated[str, StringConstraints(min_length=1, max_length=TEXT_CHARS_MAX)] | None, Field(repr=False)
    ]


class AbuseReportView(Wire):
    """A report. Text, contact and note are null once they were deleted."""

    id: str
    xr_id: str
    organization_id: Annotated[str | None, Field(description="Null once the organisation was deleted.")]
    category: AbuseCategory
    text: Annotated[str | None, Field(repr=False)]
    contact: Annotated[str | None, Field(repr=False)]
    status: AbuseStatus
    note: Annotated[str | None, Field(repr=False)]
    created_at: Timestamp
    closed_at: Timestamp | None


class AbuseReportPage(Wire):
    """Reports, newest first."""

    data: list[AbuseReportView]
    next_cursor: str | None


def report_view(opened: OpenedReport) -> AbuseReportView:
    """Return the view of a report."""
    return AbuseReportView.from_record(opened.report, text=opened.text, contact=opened.contact, note=opened.note)
