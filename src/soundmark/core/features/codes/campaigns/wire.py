"""The request and response shapes of campaigns."""

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from soundmark.core.domain.codes.campaign import StopResult, Summary
from soundmark.core.edge.ids import ResourceId
from soundmark.core.views.campaigns import CampaignView
from soundmark.wire.shape import Name, Timestamp, Wire

StartsAt = Annotated[Timestamp | None, Field(description="When issuing Codes begins; null: immediately.")]
EndsAt = Annotated[
    Timestamp | None, Field(description="When issuing Codes ends; null: never. Must be after `starts_at`.")
]


class CreateCampaign(Wire):
    """A new campaign in a project."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "organization_id": "org_b2xkLXJhZGlvLWV4YW1wbA",
                    "project_id": "prj_bW9ybmluZy1zaG93LWV4YW",
                    "name": "Summer festival",
                    "starts_at": "2027-06-21T00:00:00.000Z",
                    "ends_at": "2027-09-23T00:00:00.000Z",
                }
            ]
        }
    )

    organization_id: str
    project_id: ResourceId
    name: Name
    starts_at: StartsAt = None
    ends_at: EndsAt = None


class UpdateCampaign(Wire):
    """The members to change, at least one. Absent members keep their values; null clears a date."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "examples": [{"name": "Summer festival, prolonged", "ends_at": "2027-10-31T00:00:00.000Z"}],
        }
    )

    # A name cannot be cleared, so null is not allowed; the factory only makes the member optional and is never read.
    name: Annotated[Name, Field(default_factory=str)]
    starts_at: StartsAt = None
    ends_at: EndsAt = None

    @model_validator(mode="after")
    def _require_a_change(self) -> "UpdateCampaign":
        if not self.model_fields_set:
            raise ValueError("must name at least one of name, starts_at and ends_at")
        return self


class CampaignPage(Wire):
    """Campaigns, newest first."""

    data: list[CampaignView]
    next_cursor: str | None


class StoppedView(Wire):
    """A stopped campaign, and how many Codes this request revoked."""

    campaign: CampaignView
    revoked_count: int
    packs_valid_until: Annotated[
        Timestamp | None,
        Field(
            description="Until when receivers without a network may still answer from offline packs of the campaign "
            "or its whole project; null if there are none."
        ),
    ]


class CountsView(Wire):
    """The Codes of a campaign by status. `issued` is the sum of `active`, `expired` and `revoked`."""

    issued: int
    active: int
    expired: int
    revoked: int
    audience_enabled: int


class SummaryView(Wire):
    """A campaign with counts of its Codes, all as of the same point in time."""

    campaign: CampaignView
    counts: CountsView
    first_issued_at: Timestamp | None
    last_issued_at: Timestamp | None


def stopped_view(stopped: StopResult) -> StoppedView:
    """Return the view of a stopped campaign."""
    return StoppedView.from_record(stopped, campaign=CampaignView.from_record(stopped.campaign))


def summary_view(summary: Summary) -> SummaryView:
    """Return the view of a campaign's summary."""
    return SummaryView(
        campaign=CampaignView.from_record(summary.campaign),
        counts=CountsView(
            issued=summary.issued_count,
            active=summary.active_count,
            expired=summary.expired_count,
            revoked=summary.revoked_count,
            audience_enabled=summary.audience_enabled_count,
        ),
        first_issued_at=summary.first_issued_at,
        last_issued_at=summary.last_issued_at,
    )
