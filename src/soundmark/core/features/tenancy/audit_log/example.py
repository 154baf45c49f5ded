"""The example of an audit entry."""

import hashlib
from typing import Final

from soundmark.core.domain.tenancy.audit import AuditEntry
from soundmark.core.edge.examples import ISSUED_AT, MEMBER, PROJECT

AUDIT_ENTRY: Final = AuditEntry(
    id="aud_cmVuYW1lZC1hLXByb2plY3",
    organization_id=PROJECT.organization_id,
    project_id=PROJECT.id,
    action="project.updated",
    actor_type="user",
    actor_id=MEMBER.subject_id,
    outcome="completed",
    metadata='{"name":"Morning show"}',
    created_at=ISSUED_AT,
    finalised_at=ISSUED_AT,
    position=7,
    chain_hash=hashlib.sha256(b"the hash before, and this entry").digest(),
)
