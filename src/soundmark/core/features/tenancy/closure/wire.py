"""The request and response shapes of closures."""

from pydantic import ConfigDict

from soundmark.core.domain.tenancy.closure import ClosurePreview
from soundmark.wire.deletion_certificate import CertificateId
from soundmark.wire.shape import Timestamp, Wire


class DeleteOrganization(Wire):
    """The full id of the organisation to delete permanently."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"confirmation": "org_b2xkLXJhZGlvLWV4YW1wbA"}]})

    confirmation: str


class DeleteProject(Wire):
    """The full id of the project to delete permanently."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"confirmation": "prj_bW9ybmluZy1zaG93LWV4YW"}]})

    confirmation: str


class BlockerView(Wire):
    """The problem that a deletion would return now, and the ids of the resources that block it."""

    code: str
    ids: list[str]


class ProjectContents(Wire):
    """The contents of a project to delete. `audience_integrations` is null if Audience does not answer."""

    campaigns: int
    codes: int
    active_codes: int
    api_keys: int
    audience_integrations: int | None


class OrganizationContents(ProjectContents):
    """The contents of an organisation to delete. `audience_integrations` is null if Audience does not answer."""

    projects: int
    members: int


class ProjectPreflight(Wire):
    """The result of deleting a project now. Its certificate will have the id `certificate_id`."""

    can_delete: bool
    blockers: list[BlockerView]
    deletes: ProjectContents
    certificate_id: CertificateId
    deletion_requested_at: Timestamp | None


class OrganizationPreflight(Wire):
    """The result of deleting an organisation now. Its certificate will have the id `certificate_id`."""

    can_delete: bool
    blockers: list[BlockerView]
    deletes: OrganizationContents
    certificate_id: CertificateId
    deletion_requested_at: Timestamp | None


def organization_preflight(preview: ClosurePreview) -> OrganizationPreflight:
    """Return the view of the preflight of an organisation."""
    return OrganizationPreflight(
        can_delete=not preview.blockers,
        blockers=_blockers(preview),
        deletes=OrganizationContents.model_validate(preview.counts),
        certificate_id=preview.certificate_id,
        deletion_requested_at=preview.deletion_requested_at,
    )


def project_preflight(preview: ClosurePreview) -> ProjectPreflight:
    """Return the view of the preflight of a project."""
    return ProjectPreflight(
        can_delete=not preview.blockers,
        blockers=_blockers(preview),
        deletes=ProjectContents.model_validate(preview.counts),
        certificate_id=preview.certificate_id,
        deletion_requested_at=preview.deletion_requested_at,
    )


def _blockers(preview: ClosurePreview) -> list[BlockerView]:
    return [BlockerView(code=blocker.code, ids=list(blocker.ids)) for blocker in preview.blockers]
