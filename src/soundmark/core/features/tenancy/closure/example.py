"""Examples of previews of a deletion, and of the signed certificate."""

from typing import Final

from soundmark.core.domain.tenancy.closure import Blocker, Closure, ClosurePreview
from soundmark.core.edge.examples import EXAMPLE_KEY, ISSUED_AT, LATER, PROJECT
from soundmark.core.features.tenancy.closure.certificate import write_certificate
from soundmark.core.problems import DeletionOperationsPending
from soundmark.wire.deletion_certificate import DeletedOrganizationRows, DeletionCertificate

_CLOSURE: Final = Closure(
    organization_id=PROJECT.organization_id,
    project_id=PROJECT.id,
    certificate_id="dct_dGhhdC13YXMtaXQtZXhhbX",
    operation_id="aud_cHJvamVjdC1nb2VzLWV4YW",
    phase="deleting",
    requested_at=ISSUED_AT,
    deleted_codes=1200,
    deleted_audit_entries=0,
    deleted_certificates=0,
    purged_integrations=1,
    purged_events=48210,
    purged_integrity_days=14,
    purged_legacy_days=0,
    purged_spent_proofs=48210,
)
PROJECT_PREVIEW: Final = ClosurePreview(
    blockers=(Blocker(DeletionOperationsPending.code, ("aud_cmV0ZW50aW9uLWN1dC1leG",)),),
    counts={"campaigns": 1, "codes": 1200, "active_codes": 1100, "api_keys": 2, "audience_integrations": 1},
    certificate_id=_CLOSURE.certificate_id,
    deletion_requested_at=None,
)
ORGANIZATION_PREVIEW: Final = ClosurePreview(
    blockers=(),
    counts={**PROJECT_PREVIEW.counts, "projects": 1, "members": 3},
    certificate_id="dct_b3JnYW5pemF0aW9uLWV4YW",
    deletion_requested_at=None,
)
_NOTHING: Final = DeletedOrganizationRows(**dict.fromkeys(DeletedOrganizationRows.model_fields, 0))
_DELETED: Final = _NOTHING.model_copy(update={"projects": 1, "campaigns": 1, "codes": 1200, "api_keys": 2})
CERTIFICATE: Final = DeletionCertificate.model_validate_json(
    write_certificate(EXAMPLE_KEY, _CLOSURE, _DELETED, _NOTHING, completed_at=LATER)
)
