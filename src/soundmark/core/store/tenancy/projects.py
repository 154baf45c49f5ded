"""The table `projects`."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString

import psycopg

from soundmark.core.domain.tenancy.allowed_hosts import AllowedHosts
from soundmark.core.domain.tenancy.organization import Project
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import ProjectNameConflict
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position

_NAMES_LOCK: Final = 2  # Kind of advisory lock: docs/locks.md.
_COLUMNS: Final[LiteralString] = "id, organization_id, name, created_at, deletion_requested_at"
_SELECT: Final[LiteralString] = "SELECT " + _COLUMNS + " FROM projects "


async def insert(tx: Tx, scope: TenantScope, *, project_id: str, name: str, now: datetime) -> None:
    """Insert a project.

    Raises: ProjectNameConflict.
    """
    try:
        await tx.run(
            """
            INSERT INTO projects (organization_id, id, name, created_at)
            VALUES (%(organization_id)s, %(project_id)s, %(name)s, %(now)s)
            """,
            {"organization_id": scope.organization_id, "project_id": project_id, "name": name, "now": now},
        )
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "projects_name_key":
            raise ProjectNameConflict from None
        raise


async def lock_names(tx: Tx, scope: TenantScope) -> None:
    """Keep everybody else from renaming the organisation's projects until the transaction ends.

    Two transactions that swap names would otherwise wait for each other. Lock order: docs/locks.md.
    """
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _NAMES_LOCK, "organization_id": scope.organization_id},
    )


async def update_name(tx: Tx, scope: TenantScope, project_id: str, *, name: str) -> Project | None:
    """Set a project's name, and return the project.

    Raises: ProjectNameConflict.
    """
    try:
        return await tx.one_or_none(
            Project,
            """
            UPDATE projects
               SET name = %(name)s
             WHERE organization_id = %(organization_id)s
               AND id = %(project_id)s
            RETURNING """
            + _COLUMNS,
            {"organization_id": scope.organization_id, "project_id": project_id, "name": name},
        )
    except psycopg.errors.UniqueViolation as error:
        if error.diag.constraint_name == "projects_name_key":
            raise ProjectNameConflict from None
        raise


async def find(tx: AnyTx, scope: TenantScope, project_id: str) -> Project | None:
    """Return one project of the caller's organisation."""
    return await tx.one_or_none(
        Project,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(project_id)s",
        {"organization_id": scope.organization_id, "project_id": project_id},
    )


async def hold(tx: Tx, scope: TenantScope, project_id: str) -> bool:
    """Keep a project from being deleted until the transaction ends; return False if there is no such project.

    Lock order: docs/locks.md.
    """
    return bool(
        await tx.value(
            """
            SELECT true
              FROM projects
             WHERE organization_id = %(organization_id)s
               AND id = %(project_id)s
               FOR KEY SHARE
            """,
            {"organization_id": scope.organization_id, "project_id": project_id},
        )
    )


@dataclass(frozen=True, slots=True)
class HeldProject:
    """What issuing needs to know of a project: whether it is not being deleted, and where its intents may lead."""

    id: str
    is_open: bool
    allowed_hosts: list[str] | None


async def hold_open_many(tx: AnyTx, organization_id: str, project_ids: Sequence[str]) -> dict[str, HeldProject]:
    """Do the same as `hold_open` for several projects, in the order of their ids; missing ones are left out."""
    held = await tx.all(
        HeldProject,
        """
        SELECT id, deletion_requested_at IS NULL AS is_open, allowed_hosts
          FROM projects
         WHERE organization_id = %(organization_id)s
           AND id = ANY(%(project_ids)s::text[])
         ORDER BY id
           FOR SHARE
        """,
        {"organization_id": organization_id, "project_ids": list(project_ids)},
    )
    return {project.id: project for project in held}


async def find_allowed_hosts(tx: Tx, scope: TenantScope, project_id: str) -> AllowedHosts | None:
    """Return the allowed hosts of a project; None if there is no such project."""
    return await tx.one_or_none(
        AllowedHosts,
        """
        SELECT allowed_hosts AS hosts, allowed_hosts_at AS updated_at
          FROM projects
         WHERE organization_id = %(organization_id)s
           AND id = %(project_id)s
        """,
        {"organization_id": scope.organization_id, "project_id": project_id},
    )


async def lock_allowed_hosts(tx: Tx, scope: TenantScope, project_id: str) -> AllowedHosts | None:
    """Return the allowed hosts of a project, and keep everybody from adding to it until the transaction ends.

    None if there is no such project. Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        AllowedHosts,
        """
        SELECT allowed_hosts AS hosts, allowed_hosts_at AS updated_at
          FROM projects
         WHERE organization_id = %(organization_id)s
           AND id = %(project_id)s
           FOR NO KEY UPDATE
        """,
        {"organization_id": scope.organization_id, "project_id": project_id},
    )


async def update_allowed_hosts(
    tx: Tx, scope: TenantScope, project_id: str, *, hosts: Sequence[str] | None, now: datetime
) -> None:
    """Set the allowed hosts of a locked project."""
    await tx.run(
        """
        UPDATE projects
           SET allowed_hosts = %(hosts)s::text[],
               allowed_hosts_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(project_id)s
        """,
        {
            "organization_id": scope.organization_id,
            "project_id": project_id,
            "hosts": None if hosts is None else list(hosts),
            "now": now,
        },
    )


async def hold_open(tx: Tx, scope: TenantScope, project_id: str) -> bool | None:
    """Keep a project open until the transaction ends; return False if it is being deleted, None if it is missing.

    Lock order: docs/locks.md.
    """
    # The state is read from the row as locked, not as it was before waiting for the lock.
    is_open: bool | None = await tx.value(
        """
        SELECT deletion_requested_at IS NULL
          FROM projects
         WHERE organization_id = %(organization_id)s
           AND id = %(project_id)s
           FOR SHARE
        """,
        {"organization_id": scope.organization_id, "project_id": project_id},
    )
    return is_open


async def lock_marker(tx: Tx, organization_id: str, project_id: str) -> Project | None:
    """Keep everybody from adding to the project until the transaction ends; None if there is no such project.

    Lock order: docs/locks.md.
    """
    return await tx.one_or_none(
        Project,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(project_id)s FOR NO KEY UPDATE",
        {"organization_id": organization_id, "project_id": project_id},
    )


async def lock_for_deletion(tx: Tx, organization_id: str, project_id: str) -> bool:
    """Keep everybody from referring to the project until the transaction ends; return False if it is gone.

    Lock order: docs/locks.md.
    """
    return bool(
        await tx.value(
            """
            SELECT true
              FROM projects
             WHERE organization_id = %(organization_id)s
               AND id = %(project_id)s
               FOR UPDATE
            """,
            {"organization_id": organization_id, "project_id": project_id},
        )
    )


async def update_deletion_requested(tx: Tx, organization_id: str, project_id: str, *, now: datetime) -> None:
    """Mark a locked project as being deleted, for good."""
    await tx.run(
        """
        UPDATE projects
           SET deletion_requested_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND id = %(project_id)s
        """,
        {"organization_id": organization_id, "project_id": project_id, "now": now},
    )


async def list_newest_first(tx: Tx, scope: TenantScope, *, before: Position | None, limit: int) -> list[Project]:
    """Return up to `limit` projects of the organisation, newest first."""
    return await tx.all(
        Project,
        _SELECT + "WHERE organization_id = %(organization_id)s" + NEWEST_FIRST,
        {"organization_id": scope.organization_id, **page_params(before, limit)},
    )


def list_oldest_first(tx: Tx, scope: TenantScope, *, rows_max: int) -> AsyncGenerator[list[Project], None]:
    """Yield pages of the projects of the organisation, oldest first, then by the bytes of their ids."""
    # The collation of the database may be another one, and an archive is the same everywhere.
    return tx.pages(
        Project,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
         ORDER BY created_at, id COLLATE "C"
        """,
        {"organization_id": scope.organization_id},
        rows_max=rows_max,
    )
