"""The request and response shapes of organisations."""

from pydantic import ConfigDict

from soundmark.core.views.tenancy import OrganizationView
from soundmark.wire.shape import Name, Wire


class CreateOrganization(Wire):
    """A new organisation; the caller becomes its owner."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Radio Nordlicht"}]})

    name: Name


class RenameOrganization(Wire):
    """A new name for an organisation."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Radio Südlicht"}]})

    name: Name


class OrganizationPage(Wire):
    """Organisations, newest first."""

    data: list[OrganizationView]
    next_cursor: str | None
