"""The deletion certificate: a signed statement that nothing of an organisation or a project is left."""

from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from soundmark.kit.http.requests.strict_json import INTEGER_MAX
from soundmark.wire.shape import KeyId, Signature, Timestamp, Wire

CERTIFICATE_VERSION: Final = 1

CertificateId = Annotated[str, StringConstraints(pattern=r"^dct_[A-Za-z0-9_-]{22}$")]
OrganizationId = Annotated[str, StringConstraints(pattern=r"^org_[A-Za-z0-9_-]{1,128}$")]
ProjectId = Annotated[str, StringConstraints(pattern=r"^prj_[A-Za-z0-9_-]{1,128}$")]
DeletedCount = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
Nothing = Literal[0]


class CertifiedSubject(Wire):
    """What was deleted. The `id` of an organisation is its `organization_id` too."""

    type: Literal["organization", "project"]
    id: OrganizationId | ProjectId
    organization_id: OrganizationId


class DeletedOrganizationRows(Wire):
    """What Core deleted of an organisation."""

    projects: DeletedCount
    campaigns: DeletedCount
    codes: DeletedCount
    api_keys: DeletedCount
    members: DeletedCount
    invitations: DeletedCount
    audit_entries: DeletedCount
    tickets: DeletedCount
    checkouts: DeletedCount
    subscriptions: DeletedCount
    webhook_endpoints: DeletedCount


class DeletedProjectRows(Wire):
    """What Core deleted of a project."""

    campaigns: DeletedCount
    codes: DeletedCount
    api_keys: DeletedCount
    webhook_endpoints: DeletedCount


class DeletedAudienceRows(Wire):
    """What Audience deleted."""

    integrations: DeletedCount
    events: DeletedCount
    integrity_days: DeletedCount
    legacy_days: DeletedCount
    spent_proofs: DeletedCount


class RemainingOrganizationRows(Wire):
    """What Core counted of an organisation after the deletion."""

    projects: Nothing
    campaigns: Nothing
    codes: Nothing
    api_keys: Nothing
    members: Nothing
    invitations: Nothing
    audit_entries: Nothing
    tickets: Nothing
    checkouts: Nothing
    subscriptions: Nothing
    webhook_endpoints: Nothing


class RemainingProjectRows(Wire):
    """What Core counted of a project after the deletion."""

    campaigns: Nothing
    codes: Nothing
    api_keys: Nothing
    webhook_endpoints: Nothing


class RemainingAudienceRows(Wire):
    """What Audience counted after the deletion."""

    integrations: Nothing
    events: Nothing
    integrity_days: Nothing
    legacy_days: Nothing
    spent_proofs: Nothing


class DeletedRows(Wire):
    """What was deleted, by component."""

    core: DeletedOrganizationRows | DeletedProjectRows
    audience: DeletedAudienceRows


class RemainingRows(Wire):
    """What was counted again after the deletion, by component: nothing."""

    core: RemainingOrganizationRows | RemainingProjectRows
    audience: RemainingAudienceRows


class DeletionCertificate(Wire):
    """A deletion certificate.

    `requested_at` is when the deletion was requested, `completed_at` when the last row was deleted. `signature` is
    Ed25519 over the canonical JSON (RFC 8785) of the certificate without this member.

    Source: contract, section 8.
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
