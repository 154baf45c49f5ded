"""What an archive is about: an organisation, or one of its projects."""

from dataclasses import dataclass

from soundmark.core.domain.tenancy.audit import AuditAction
from soundmark.core.problems import OrganizationExportTooLarge, ProjectExportTooLarge
from soundmark.core.views.archives import ORGANIZATION_FORMAT, PROJECT_FORMAT, ArchiveFormat
from soundmark.kit.http.responses.problems import Problem


@dataclass(frozen=True, slots=True)
class ArchiveSubject:
    """The organisation or project that is exported. `project_id` is None for a whole organisation."""

    id: str
    project_id: str | None
    format: ArchiveFormat
    action: AuditAction
    too_large: type[Problem]

    @property
    def file_name(self) -> str:
        """The suggested name of the file."""
        return f"{self.id}.{self.format}.json"


def organization_subject(organization_id: str) -> ArchiveSubject:
    """Return the subject of an archive of a whole organisation."""
    return ArchiveSubject(
        organization_id, None, ORGANIZATION_FORMAT, "organization.exported", OrganizationExportTooLarge
    )


def project_subject(project_id: str) -> ArchiveSubject:
    """Return the subject of an archive of one project."""
    return ArchiveSubject(project_id, project_id, PROJECT_FORMAT, "project.exported", ProjectExportTooLarge)
