"""What is asked and answered about integrations."""

from typing import Annotated

from pydantic import Field, model_validator

from soundmark.audience.domain.integration import (
    Integration,
    Mode,
    Status,
)
from soundmark.audience.wire import CoreKey, Count, TenantId
from soundmark.wire.audience_limits import RETENTION_DAYS_MAX
from soundmark.wire.shape import Timestamp, Wire

RetentionDays = Annotated[int, Field(ge=1, le=RETENTION_DAYS_MAX)]


class EntitlementPart(Wire):
    """The organisation's entitlement, as Core has it when it makes an integration."""

    monthly_event_quota: Count
    ends_at: Timestamp | None
    revision: Count


class CreateIntegration(Wire):
    """A new integration of a project. A demo has no entitlement."""

    organization_id: TenantId
    project_id: TenantId
    mode: Mode
    retention_days: RetentionDays
    core_key: CoreKey
    entitlement: EntitlementPart | None

    @model_validator(mode="after")
    def _demo_is_bare(self) -> "CreateIntegration":
        if self.mode == "demo" and self.entitlement is not None:
            raise ValueError("a demo has no entitlement")
        return self


class ChangeRetention(Wire):
    """How many days the data of an integration is kept from now on."""

    retention_days: RetentionDays


class IntegrationView(Wire):
    """An integration."""

    id: str
    organization_id: str
    project_id: str
    mode: Mode
    retention_days: int
    status: Status
    core_key_id: str
    created_at: Timestamp
    secret_rotated_at: Timestamp | None
    revoked_at: Timestamp | None


class WithSecret(Wire):
    """An integration with its new HMAC secret; null where the operation is repeated: it is told once."""

    integration: IntegrationView
    hmac_secret: Annotated[str | None, Field(repr=False)]


class IntegrationPage(Wire):
    """Integrations, newest first."""

    data: list[IntegrationView]


class RetentionChanged(Wire):
    """What another retention changed. Integrity days are rows of a day's counters."""

    integration_id: str
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


class CoreKeyReplaced(Wire):
    """The key that an integration trusts now."""

    integration_id: str
    core_key_id: str


def integration_view(integration: Integration) -> IntegrationView:
    """What is answered of one integration."""
    return IntegrationView(
        id=integration.id,
        organization_id=integration.organization_id,
        project_id=integration.project_id,
        mode=integration.mode,
        retention_days=integration.retention_days,
        status=integration.status,
        core_key_id=integration.core_key_id,
        created_at=integration.created_at,
        secret_rotated_at=integration.secret_rotated_at,
        revoked_at=integration.revoked_at,
    )
