"""The public view of Audience integrations."""

from typing import Annotated, Literal

from pydantic import Field

from soundmark.wire.private.integrations import IntegrationResponse
from soundmark.wire.shape import AudienceMode, IntegrationId, KeyId, Timestamp, Wire


class ArchivedIntegration(Wire):
    """An integration in an archive, without its secret, anything derived from it, and its name."""

    id: IntegrationId
    organization_id: str
    project_id: str
    mode: AudienceMode
    retention_days: int
    status: Literal["active", "revoked"]
    core_key_id: Annotated[KeyId, Field(description="The Core key that verifies proofs.")]
    created_at: Timestamp
    secret_rotated_at: Timestamp | None
    revoked_at: Timestamp | None


class IntegrationView(ArchivedIntegration):
    """An integration, without its secret or anything derived from it."""

    name: Annotated[str | None, Field(description="A display name; null if the integration has none.")]


def archived_integration(integration: IntegrationResponse) -> ArchivedIntegration:
    """Return one integration as archives have it."""
    return ArchivedIntegration(
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


def integration_view(integration: IntegrationResponse, name: str | None) -> IntegrationView:
    """Return the view of one integration with its name."""
    return IntegrationView(**dict(archived_integration(integration)), name=name)
