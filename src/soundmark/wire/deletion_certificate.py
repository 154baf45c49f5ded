"""The deletion certificate: a signed statement that nothing of an organisation or a project is left."""

from typing import Annotated, Final, Generic, Literal, TypeVar

from pydantic import Field, StringConstraints

from soundmark.kit.http.requests.strict_json import INTEGER_MAX
from soundmark.wire.shape import KeyId, Signature, Timestamp, Wire

CERTIFICATE_VERSION: Final = 1

CertificateId = Annotated[str, StringConstraints(pattern=r"^dct_[A-Za-z0-9_-]{22}$")]
OrganizationId = Annotated[str, StringConstraints(pattern=r"^org_[A-Za-z0-9_-]{1,128}$")]
ProjectId = Annotated[str, StringConstraints(pattern=r"^prj_[A-Za-z0-9_-]{1,128}$")]
DeletedCount = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
Nothing = Literal[0]
Count = TypeVar("Count")


class CertifiedSubject(Wire):
    """What was deleted. The `id` of an organisation equals its `organization_id`."""

    type: Literal["organization", "project"]
    id: OrganizationId | ProjectId
    organization_id: OrganizationId


class _OrganizationRows(Wire, Generic[Count]):
    """The one list of the tables whose rows are counted, in the order of the certificate."""

    projects: Count
    campaigns: Count
    codes: Count
    api_keys: Count
    members: Count
    invitations: Count
    audit_entries: Count
    tickets: Count
    checkouts: Count
    subscriptions: Count
    webhook_endpoints: Count
    # Certificates of before these counts existed have none.
    decode_certificates: Count = Field(default=0)  # type: ignore[assignment]  # 0 is a count of either kind
    offline_packs: Count = Field(default=0)  # type: ignore[assignment]  # 0 is a count of either kind


class _ProjectRows(Wire, Generic[Count]):
    """The tables among them in which a project has rows of its own."""

    campaigns: Count
    codes: Count
    api_keys: Count
    webhook_endpoints: Count
    decode_certificates: Count = Field(default=0)  # type: ignore[assignment]  # 0 is a count of either kind
    offline_packs: Count = Field(default=0)  # type: ignore[assignment]  # 0 is a count of either kind


class AudienceRows(Wire, Generic[Count]):
    """The rows of Audience that are counted."""

    integrations: Count
    events: Count
    integrity_days: Count
    legacy_days: Count
    spent_proofs: Count


class DeletedOrganizationRows(_OrganizationRows[DeletedCount]):
    """The rows that Core deleted for an organisation."""


class DeletedProjectRows(_ProjectRows[DeletedCount]):
    """The rows that Core deleted for a project."""


class DeletedAudienceRows(AudienceRows[DeletedCount]):
    """The rows that Audience deleted."""


class RemainingOrganizationRows(_OrganizationRows[Nothing]):
    """The rows that Core still had for an organisation after the deletion: none."""


class RemainingProjectRows(_ProjectRows[Nothing]):
    """The rows that Core still had for a project after the deletion: none."""


class RemainingAudienceRows(AudienceRows[Nothing]):
    """The rows that Audience still had after the deletion: none."""


class DeletedRows(Wire):
    """The deleted rows, by component."""

    core: DeletedOrganizationRows | DeletedProjectRows
    audience: DeletedAudienceRows


class RemainingRows(Wire):
    """The rows that remained after the deletion, by component: none."""

    core: RemainingOrganizationRows | RemainingProjectRows
    audience: RemainingAudienceRows


class DeletionCertificate(Wire):
    """A deletion certificate.

    `requested_at` is when the deletion was requested; `completed_at` is when the last row was deleted. `signature` is
    Ed25519 over the canonical JSON (RFC 8785) of the certificate without this member.
    """

    version: Literal[1]
    certificate_id: CertificateId
    subject: CertifiedSubject
    requested_at: Timestamp
    completed_at: Timestamp
    deleted: DeletedRows
    remaining: RemainingRows
    key_id: KeyId
    signature: Signature
