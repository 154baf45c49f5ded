"""The request and response shapes of organisations, as administrators of the platform see them."""

from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints

from soundmark.wire.shape import Timestamp, Wire

REASON_CHARS_MAX = 500


class PutSuspension(Wire):
    """Why an organisation is suspended."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"reason": "Links to malware, report abr_c3BhbW1lci1leGFtcGxlLW"}]}
    )

    # People write it in several lines.
    reason: Annotated[
        str,
        StringConstraints(
            strip_whitespace=True,
            min_length=1,
            max_length=REASON_CHARS_MAX,
            pattern=r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$",
        ),
        Field(description="For administrators of the platform; members of the organisation do not see it."),
    ]


class PlatformOrganizationView(Wire):
    """An organisation, as an administrator of the platform sees it."""

    id: str
    name: str
    created_at: Timestamp
    deletion_requested_at: Timestamp | None
    suspended_at: Timestamp | None
    suspension_reason: str | None


class SuspendedOrganizationView(PlatformOrganizationView):
    """An organisation that was just suspended."""

    packs_valid_until: Annotated[
        Timestamp | None,
        Field(description="Until when receivers may still answer from offline packs of it; null if there are none."),
    ]


class PlatformOrganizationPage(Wire):
    """Organisations, newest first."""

    data: list[PlatformOrganizationView]
    next_cursor: str | None
