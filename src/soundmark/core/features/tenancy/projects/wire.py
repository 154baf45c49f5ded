"""The request and response shapes of projects."""

from pydantic import ConfigDict

from soundmark.core.domain.tenancy.organization import Project
from soundmark.wire.shape import Name, Timestamp, Wire


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


class ProjectView(Wire):
    """A project."""

    id: str
    organization_id: str
    name: str
    created_at: Timestamp
    deletion_requested_at: Timestamp | None


class ProjectPage(Wire):
    """Projects, newest first."""

    data: list[ProjectView]
    next_cursor: str | None


def project_view(project: Project) -> ProjectView:
    """Return the view of one project."""
    return ProjectView(
        id=project.id,
        organization_id=project.organization_id,
        name=project.name,
        created_at=project.created_at,
        deletion_requested_at=project.deletion_requested_at,
    )
