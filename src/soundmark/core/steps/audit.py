"""The audit log, written in the transaction of the change that an entry records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from soundmark.core.domain.tenancy.audit import AuditAction, AuditEntry, AuditIntent, IntentAction
from soundmark.core.domain.tenancy.scope import Actor, TenantScope
from soundmark.core.store.tenancy import audit
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.ids import mint
from soundmark.kit.tracing.context import find_traceparent


async def record(
    tx: Tx,
    scope: TenantScope,
    entropy: Entropy,
    action: AuditAction,
    *,
    now: datetime,
    project_id: str | None = None,
    **facts: Any,
) -> AuditEntry:
    """Record that the caller did `action`.

    `facts` are ids, counts, names and states; never a secret, a token or an intent.
    """
    entry = entry_of(scope, entropy, action, now=now, project_id=project_id, **facts)
    await record_all(tx, [entry])
    return entry


async def record_as(
    tx: Tx,
    actor: Actor,
    entropy: Entropy,
    action: AuditAction,
    *,
    organization_id: str,
    now: datetime,
    project_id: str | None = None,
    **facts: Any,
) -> AuditEntry:
    """Do the same as `record` for an actor who has no scope in the organisation, or not yet."""
    entry = _entry(organization_id, actor, entropy, action, now, project_id, facts)
    await record_all(tx, [entry])
    return entry


def entry_of(
    scope: TenantScope,
    entropy: Entropy,
    action: AuditAction,
    *,
    now: datetime,
    project_id: str | None = None,
    **facts: Any,
) -> AuditEntry:
    """Return the entry that `record` would write, for `record_all`."""
    return _entry(scope.organization_id, scope.actor, entropy, action, now, project_id, facts)


async def record_all(tx: AnyTx, entries: Sequence[AuditEntry]) -> None:
    """Record several changes of one organisation, made at one moment."""
    await audit.insert(tx, entries, stage="final")


async def request(
    tx: Tx, scope: TenantScope, entropy: Entropy, action: IntentAction, *, now: datetime, project_id: str, **facts: Any
) -> AuditIntent:
    """Record that the caller requests `action`; `store.tenancy.audit.update_outcome` records the outcome later.

    For a change outside this transaction, in another component, which knows the operation by the entry's id.
    Source: API v1, "Lifecycle audit intents".
    """
    entry = replace(
        entry_of(scope, entropy, action, now=now, project_id=project_id, **facts),
        outcome="requested",
        finalised_at=None,
    )
    await audit.insert(tx, [entry], stage="requested")
    return AuditIntent(entry.organization_id, entry.id, entry.project_id, action, entry.created_at)


def _entry(
    organization_id: str,
    actor: Actor,
    entropy: Entropy,
    action: AuditAction,
    now: datetime,
    project_id: str | None,
    facts: Mapping[str, Any],
) -> AuditEntry:
    return AuditEntry(
        id=mint(entropy, "aud_"),
        organization_id=organization_id,
        project_id=project_id,
        action=action,
        actor_type=actor.type,
        actor_id=actor.id,
        outcome="completed",
        metadata=canonicalize(facts).decode(),
        created_at=now,
        finalised_at=now,
        traceparent=find_traceparent(),
    )
