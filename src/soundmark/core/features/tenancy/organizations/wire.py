"""The request and response shapes of organisations."""

from typing import Literal

from pydantic import ConfigDict

from soundmark.core.domain.tenancy.organization import Organization
from soundmark.wire.shape import Name, Timestamp, Wire


class CreateOrganization(Wire):
    """A new organisation; the caller becomes its owner."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Radio Nordlicht"}]})

    name: Name


class RenameOrganization(Wire):
    """A new name for an organisation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Radio Südlicht"}]})

    name: Name


class OrganizationView(Wire):
    """An organisation, as one of its members sees it."""

    id: str
    name: str
    role: Literal["owner", "admin", "member", "billing"]
    created_at: Timestamp
    deletion_requested_at: Timestamp | None


class OrganizationPage(Wire):
    """Organisations, newest first."""

    data: list[OrganizationView]
    next_cursor: str | None


def organization_view(organization: Organization) -> OrganizationView:
    """Return the view of one organisation."""
    return OrganizationView(
        id=organization.id,
        name=organization.name,
        role=organization.role,
        created_at=organization.created_at,
        deletion_requested_at=organization.deletion_requested_at,
    )
