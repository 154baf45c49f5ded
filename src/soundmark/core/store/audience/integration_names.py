"""The table `integration_names`. The integrations themselves are in Audience's database."""

from collections.abc import Sequence
from dataclasses import dataclass

from soundmark.core.domain.tenancy.audit import AuditIntent
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class _Named:
    named_id: str
    name: str


async def insert_requested(tx: Tx, intent: AuditIntent, *, name: str) -> None:
    """Store the name of an integration that does not exist yet, under the audit intent with which it is created."""
    await tx.run(
        """
        INSERT INTO integration_names (organization_id, named_id, project_id, name)
        VALUES (%(organization_id)s, %(intent_id)s, %(project_id)s, %(name)s)
        """,
        {
            "organization_id": intent.organization_id,
            "intent_id": intent.id,
            "project_id": intent.project_id,
            "name": name,
        },
    )


async def update_created(tx: Tx, intent: AuditIntent, integration_id: str) -> None:
    """Give the name that was stored under the intent to the integration, unless it was named in the meantime."""
    await tx.run(
        """
        UPDATE integration_names
           SET named_id = %(integration_id)s
         WHERE organization_id = %(organization_id)s
           AND named_id = %(intent_id)s
           AND NOT EXISTS (SELECT
                             FROM integration_names
                            WHERE organization_id = %(organization_id)s
                              AND named_id = %(integration_id)s)
        """,
        {"organization_id": intent.organization_id, "intent_id": intent.id, "integration_id": integration_id},
    )


async def delete_requested(tx: Tx, intent: AuditIntent) -> None:
    """Delete the name that is still stored under the intent."""
    await tx.run(
        """
        DELETE FROM integration_names
         WHERE organization_id = %(organization_id)s
           AND named_id = %(intent_id)s
        """,
        {"organization_id": intent.organization_id, "intent_id": intent.id},
    )


async def insert_or_update(tx: Tx, scope: TenantScope, project_id: str, integration_id: str, *, name: str) -> bool:
    """Name an integration of a project that is held; return whether this changed its name. Lock order: docs/locks.md.

    Of two commands that give one name, the second waits for the first, and changes nothing.
    """
    touched = await tx.run(
        """
        INSERT INTO integration_names AS stored (organization_id, named_id, project_id, name)
        VALUES (%(organization_id)s, %(integration_id)s, %(project_id)s, %(name)s)
            ON CONFLICT (organization_id, named_id) DO UPDATE
           SET name = EXCLUDED.name
         WHERE stored.name <> EXCLUDED.name
        """,
        {
            "organization_id": scope.organization_id,
            "integration_id": integration_id,
            "project_id": project_id,
            "name": name,
        },
    )
    return touched > 0


async def delete(tx: Tx, scope: TenantScope, integration_id: str) -> bool:
    """Remove the name of an integration; return whether it had one. Lock order: docs/locks.md."""
    touched = await tx.run(
        """
        DELETE FROM integration_names
         WHERE organization_id = %(organization_id)s
           AND named_id = %(integration_id)s
        """,
        {"organization_id": scope.organization_id, "integration_id": integration_id},
    )
    return touched > 0


async def find_many(tx: Tx, scope: TenantScope, integration_ids: Sequence[str]) -> dict[str, str]:
    """Return the names of those of the integrations that have one, by id."""
    found = await tx.all(
        _Named,
        """
        SELECT named_id, name
          FROM integration_names
         WHERE organization_id = %(organization_id)s
           AND named_id = ANY(%(integration_ids)s::text[])
        """,
        {"organization_id": scope.organization_id, "integration_ids": list(integration_ids)},
    )
    return {each.named_id: each.name for each in found}
