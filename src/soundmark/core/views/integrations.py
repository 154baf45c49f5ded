"""The public view of Audience integrations."""

from typing import Annotated, Literal

from pydantic import Field

from soundmark.wire.private.integrations import IntegrationResponse
from soundmark.wire.shape import AudienceMode, IntegrationId, KeyId, Timestamp, Wire


class ArchivedIntegration(Wire):
    """An integration as archives have it: without its secret, anything derived from it, and its name."""

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
    """An integration, without its secret and anything derived from it."""

    name: Annotated[str | None, Field(description="A name for people; null if the integration has none.")]


def integration_view(integration: IntegrationResponse, name: str | None) -> IntegrationView:
    """Return the view of one integration with its name."""
    return IntegrationView.from_record(integration, name=name)
