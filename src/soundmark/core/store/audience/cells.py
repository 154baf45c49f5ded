"""The cells of organisations, in the table `organizations`, and those of integrations, in `integration_cells`."""

from dataclasses import dataclass

from soundmark.core.domain.tenancy.audit import AuditIntent
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.transaction import Tx


@dataclass(frozen=True, slots=True)
class OrganizationCells:
    """The cell that holds an organisation's data, and the cell that the operator chose; None for what is not set."""

    audience_cell: str | None
    preferred_audience_cell: str | None


@dataclass(frozen=True, slots=True)
class CellCount:
    """The number of organisations in a cell."""

    cell: str
    organizations: int


@dataclass(frozen=True, slots=True)
class _OneCell:
    cell: str


async def find(tx: Tx, organization_id: str) -> str | None:
    """Return the cell of an organisation; None before its first integration or import. It never changes."""
    cell: str | None = await tx.value(
        "SELECT audience_cell FROM organizations WHERE id = %(organization_id)s", {"organization_id": organization_id}
    )
    return cell


async def find_both(tx: Tx, organization_id: str) -> OrganizationCells | None:
    """Return the cells of an organisation; None if there is no such organisation."""
    return await tx.one_or_none(
        OrganizationCells,
        "SELECT audience_cell, preferred_audience_cell FROM organizations WHERE id = %(organization_id)s",
        {"organization_id": organization_id},
    )


async def count_organizations(tx: Tx) -> list[CellCount]:
    """Return how many organisations each cell has, of every tenant."""
    return await tx.all(
        CellCount,
        """
        SELECT audience_cell AS cell, count(*) AS organizations
          FROM organizations
         WHERE audience_cell IS NOT NULL
         GROUP BY audience_cell
        """,
    )


async def list_in_use(tx: Tx) -> list[str]:
    """Return the names of the cells that an organisation of any tenant has, or shall have, in order."""
    # One step in an index for each name, however many organisations there are.
    rows = await tx.all(
        _OneCell,
        """
        WITH RECURSIVE used (cell) AS (
            SELECT min(audience_cell) FROM organizations
             UNION ALL
            SELECT (SELECT min(audience_cell) FROM organizations WHERE audience_cell > used.cell)
              FROM used
             WHERE used.cell IS NOT NULL
        ), wanted (cell) AS (
            SELECT min(preferred_audience_cell) FROM organizations
             UNION ALL
            SELECT (SELECT min(preferred_audience_cell) FROM organizations WHERE preferred_audience_cell > wanted.cell)
              FROM wanted
             WHERE wanted.cell IS NOT NULL
        )
        SELECT cell FROM used WHERE cell IS NOT NULL
         UNION
        SELECT cell FROM wanted WHERE cell IS NOT NULL
         ORDER BY cell
        """,
    )
    return [row.cell for row in rows]


async def update_assigned(tx: Tx, organization_id: str, proposed: str) -> None:
    """Give an organisation its cell: the operator's, or else the one proposed. One that has a cell keeps it.

    Nothing is given to an organisation that is being deleted. Lock order: docs/locks.md.
    """
    await tx.run(
        """
        UPDATE organizations
           SET audience_cell = coalesce(preferred_audience_cell, %(proposed)s),
               preferred_audience_cell = NULL
         WHERE id = %(organization_id)s
           AND audience_cell IS NULL
           AND deletion_requested_at IS NULL
        """,
        {"organization_id": organization_id, "proposed": proposed},
    )


async def update_preferred(tx: Tx, organization_id: str, cell: str) -> bool:
    """Choose the cell of an organisation; return False if it is closing or already has one.

    Lock order: docs/locks.md.
    """
    touched = await tx.run(
        """
        UPDATE organizations
           SET preferred_audience_cell = %(cell)s
         WHERE id = %(organization_id)s
           AND audience_cell IS NULL
           AND deletion_requested_at IS NULL
        """,
        {"organization_id": organization_id, "cell": cell},
    )
    return touched > 0


async def insert_integration(tx: Tx, intent: AuditIntent, integration_id: str) -> None:
    """Store that the integration which is created under the intent is in its organisation's cell."""
    await tx.run(
        """
        INSERT INTO integration_cells (integration_id, organization_id, project_id, cell)
        SELECT %(integration_id)s, id, %(project_id)s, audience_cell
          FROM organizations
         WHERE id = %(organization_id)s
        """,
        {
            "integration_id": integration_id,
            "organization_id": intent.organization_id,
            "project_id": intent.project_id,
        },
    )


async def delete_integration(tx: Tx, intent: AuditIntent, integration_id: str) -> None:
    """Forget the cell of an integration that was not created."""
    await tx.run(
        """
        DELETE FROM integration_cells
         WHERE organization_id = %(organization_id)s
           AND integration_id = %(integration_id)s
        """,
        {"organization_id": intent.organization_id, "integration_id": integration_id},
    )


async def find_of_integration(db: Database, integration_id: str) -> str | None:
    """Return the cell of an integration of any tenant, in a transaction of its own; None for an unknown one."""
    found = await db.one_or_none(
        _OneCell,
        "SELECT cell FROM integration_cells WHERE integration_id = %(integration_id)s",
        {"integration_id": integration_id},
    )
    return None if found is None else found.cell
