"""The public view of Audience integrations."""

from typing import Annotated, Literal

from pydantic import Field

from soundmark.core.domain.audience.integration import DescribedIntegration
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


def integration_view(described: DescribedIntegration) -> IntegrationView:
    """Return the view of one integration."""
    return IntegrationView.from_record(described.integration, name=described.name)
