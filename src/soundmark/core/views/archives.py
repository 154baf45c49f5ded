"""The shapes of archives. An archive is written record by record, and never held in memory as one of these."""

from typing import Annotated, Final, Literal

from pydantic import Field

from soundmark.core.views.campaigns import CampaignView
from soundmark.core.views.integrations import ArchivedIntegration
from soundmark.core.views.signing_keys import HistoricKey
from soundmark.core.views.tenancy import ArchivedApiKey, ArchivedOrganization, MemberView, ProjectView
from soundmark.wire.shape import Digest, KeyId, Signature, Timestamp, Wire
from soundmark.wire.xr_code import CodeDetail

ArchiveFormat = Literal["svc-organization-archive-v1", "svc-project-archive-v1"]

ORGANIZATION_FORMAT: Final = "svc-organization-archive-v1"
PROJECT_FORMAT: Final = "svc-project-archive-v1"

Count = Annotated[int, Field(ge=0)]


class ArchiveKeys(Wire):
    """A JWK Set of every key that signed one of the Codes, and of the key that signed the seal."""

    keys: list[HistoricKey]


class ProjectCounts(Wire):
    """The number of records in each list."""

    campaigns: Count
    codes: Count
    api_keys: Count
    audience_integrations: Count


class OrganizationCounts(ProjectCounts):
    """The number of records in each list of an organisation's archive."""

    members: Count
    projects: Count


class ArchiveSeal(Wire):
    """Core's signature over the archive: Ed25519 over the RFC 8785 bytes of the other members of the seal."""

    version: Literal[1]
    format: ArchiveFormat
    subject_id: Annotated[str, Field(description="The id of the organisation or the project.")]
    exported_at: Timestamp
    digest: Annotated[Digest, Field(description='SHA-256 of the file\'s bytes before the last `,"seal":`, base64url.')]
    key_id: KeyId
    signature: Signature


class ProjectArchive(Wire):
    """Everything in one project, as of one point in time. Each list is oldest first, then in the order of ids."""

    format: Literal["svc-project-archive-v1"]
    exported_at: Annotated[Timestamp, Field(description="The point in time that every status refers to.")]
    organization_id: str
    project: ProjectView
    campaigns: list[CampaignView]
    codes: list[CodeDetail]
    api_keys: list[ArchivedApiKey]
    audience_integrations: list[ArchivedIntegration]
    verification_keys: ArchiveKeys
    counts: ProjectCounts
    seal: ArchiveSeal


class OrganizationArchive(Wire):
    """Everything in one organisation, as of one point in time. Each list is oldest first, then in the order of ids."""

    format: Literal["svc-organization-archive-v1"]
    exported_at: Annotated[Timestamp, Field(description="The point in time that every status refers to.")]
    organization: ArchivedOrganization
    members: list[MemberView]
    projects: list[ProjectView]
    campaigns: list[CampaignView]
    codes: list[CodeDetail]
    api_keys: list[ArchivedApiKey]
    audience_integrations: list[ArchivedIntegration]
    verification_keys: ArchiveKeys
    counts: OrganizationCounts
    seal: ArchiveSeal
