"""The request and response shapes of Audience integrations."""

from typing import Annotated

from pydantic import ConfigDict, Field

from soundmark.core.domain.audience.integration import IntegrationSecret
from soundmark.core.edge.ids import UnboundedId
from soundmark.core.views.integrations import IntegrationView
from soundmark.wire.audience_limits import DEMO_EVENTS_MAX, DEMO_RETENTION_DAYS_MAX, RETENTION_DAYS_MAX
from soundmark.wire.shape import AudienceMode, IntegrationId, KeyId, Name, Wire

RetentionDays = Annotated[
    int,
    Field(
        ge=1,
        le=RETENTION_DAYS_MAX,
        description=f"The number of days that events are kept; at most {DEMO_RETENTION_DAYS_MAX} in mode `demo`.",
    ),
]


class CreateIntegration(Wire):
    """A new integration in a project."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "organization_id": "org_b2xkLXJhZGlvLWV4YW1wbA",
                    "project_id": "prj_bW9ybmluZy1zaG93LWV4YW",
                    "name": "Studio measurement",
                    "mode": "demo",
                    "retention_days": 14,
                }
            ]
        }
    )

    organization_id: str
    project_id: UnboundedId
    name: Name | None = None
    mode: Annotated[
        AudienceMode,
        Field(description=f"`demo` records up to {DEMO_EVENTS_MAX} events a month; the others require an entitlement."),
    ]
    retention_days: RetentionDays


class RenameIntegration(Wire):
    """A new name for an integration; null removes the name."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Studio measurement"}]})

    name: Name | None


class ChangeRetention(Wire):
    """A new retention for an integration."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"retention_days": 7}]})

    retention_days: RetentionDays


class IntegrationWithSecret(IntegrationView):
    """An integration with its HMAC secret, which is returned only once."""

    hmac_secret: Annotated[str, Field(repr=False, pattern=r"^xhm_[A-Za-z0-9_-]{43}$")]


class IntegrationPage(Wire):
    """Integrations, newest first."""

    data: list[IntegrationView]
    next_cursor: str | None


class RetentionView(Wire):
    """A changed retention, with exact counts of what was deleted."""

    integration_id: IntegrationId
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


class CoreKeyView(Wire):
    """The Core key that an integration trusts now."""

    integration_id: IntegrationId
    core_key_id: KeyId


def with_secret_view(created: IntegrationSecret) -> IntegrationWithSecret:
    """Return the view of an integration that just received a secret."""
    described = created.integration
    return IntegrationWithSecret.from_record(
        described.integration,
        name=described.name,
        hmac_secret=created.hmac_secret.reveal(),
    )
