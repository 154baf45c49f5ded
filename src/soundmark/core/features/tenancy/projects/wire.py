"""The request and response shapes of projects."""

from pydantic import ConfigDict

from soundmark.core.views.tenancy import ProjectView
from soundmark.wire.shape import Name, Wire


class CreateProject(Wire):
    """A new project in an organisation."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"organization_id": "org_b2xkLXJhZGlvLWV4YW1w", "name": "Morning show"}]}
    )

    organization_id: str
    name: Name


class RenameProject(Wire):
    """A new name for a project."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Evening show"}]})

    name: Name


class ProjectPage(Wire):
    """Projects, newest first."""

    data: list[ProjectView]
    next_cursor: str | None
