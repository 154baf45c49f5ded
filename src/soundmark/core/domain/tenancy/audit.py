"""Entries of the audit log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark.core.domain.tenancy.scope import ActorType

# API v1, "Tenant audit actions", and contract, section 3. New features add their actions here.
AuditAction = Literal[
    "api_key.created",
    "api_key.renamed",
    "api_key.revoked",
    "api_key.secret_rotated",
    "audience.integration_core_key_update",
    "audience.integration_provisioning",
    "audience.integration_renamed",
    "audience.integration_retention_update",
    "audience.integration_revocation",
    "audience.integration_secret_rotation",
    "billing.audience_contract_changed",
    "billing.checkout_cancelled",
    "billing.checkout_created",
    "billing.accounting_customer_changed",
    "billing.entitlement_changed",
    "campaign.archived",
    "campaign.created",
    "campaign.stopped",
    "campaign.updated",
    "code.batch_issued",
    "code.batch_revoked",
    "code.issued",
    "code.revoked",
    "decode_certificate.issued",
    "invitation.accepted",
    "invitation.created",
    "invitation.revoked",
    "member.removed",
    "member.role_changed",
    "offline_pack.created",
    "organization.created",
    "organization.deletion_requested",
    "organization.exported",
    "organization.restored",
    "organization.suspended",
    "organization.updated",
    "project.allowed_hosts_changed",
    "project.created",
    "project.deleted",
    "project.deletion_requested",
    "project.exported",
    "project.updated",
    "support.ticket_created",
    "support.ticket_replied",
    "webhook_endpoint.created",
    "webhook_endpoint.deleted",
    "webhook_endpoint.secret_rotated",
    "webhook_endpoint.updated",
]
# Actions outside Core's transactions: their entries are written as `requested` before, and finalised afterwards.
IntentAction = Literal[
    "audience.integration_core_key_update",
    "audience.integration_provisioning",
    "audience.integration_retention_update",
    "audience.integration_revocation",
    "audience.integration_secret_rotation",
]
FinalOutcome = Literal["completed", "failed"]
AuditOutcome = Literal["requested", "completed", "failed"]
Stage = Literal["requested", "final"]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry. `metadata` is canonical JSON; `finalised_at` is None while the outcome is `requested`.

    `traceparent` is the place in a trace that the entry was made at. It is kept with the act, not with the entry.
    `position` and `chain_hash` are its place in the public chain; None until it is final and chained.
    """

    id: str
    organization_id: str
    project_id: str | None
    action: str
    actor_type: ActorType
    actor_id: str
    outcome: AuditOutcome
    metadata: str
    created_at: datetime
    finalised_at: datetime | None
    traceparent: str | None = None
    position: int | None = None
    chain_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class AuditIntent:
    """An entry that is `requested` and has no outcome yet, with all that is needed to finalise exactly this entry."""

    organization_id: str
    id: str
    project_id: str | None
    action: IntentAction
    created_at: datetime
