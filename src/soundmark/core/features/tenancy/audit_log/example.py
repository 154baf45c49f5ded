"""Examples: an audit entry, and a head of a chain in the log."""

import hashlib
from typing import Final

from soundmark.core.domain.tenancy.audit import AuditEntry
from soundmark.core.domain.tenancy.audit_chain import LoggedHead
from soundmark.core.edge.examples import ISSUED_AT, MEMBER, PROJECT

_HASH: Final = hashlib.sha256(b"the hash before, and this entry").digest()
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
    chain_hash=_HASH,
)
LOGGED_HEAD: Final = LoggedHead(40, _HASH, hashlib.sha256(_HASH).digest(), ISSUED_AT)
