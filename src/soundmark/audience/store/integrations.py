"""The table `integrations`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, LiteralString

from soundmark.audience.domain.integration import Integration, TrustedKey, Workspace
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.paging import NEWEST_FIRST, page_params
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position
from soundmark.wire.shape import AudienceMode

_SELECT: Final[LiteralString] = """
    SELECT id, organization_id, project_id, mode, retention_days, core_key_id, created_at, secret_rotated_at, revoked_at
      FROM integrations
"""
_ONE: Final[LiteralString] = (
    _SELECT
    + """
     WHERE organization_id = %(organization_id)s
       AND project_id = %(project_id)s
       AND id = %(integration_id)s
"""
)


@dataclass(frozen=True, slots=True)
class _Id:
    id: str


@dataclass(frozen=True, slots=True)
class _Count:
    mode: AudienceMode
    count: int


async def insert(tx: Tx, integration: Integration, *, sealed_secret: bytes, core_key: TrustedKey) -> None:
    """Insert an integration that trusts `core_key`."""
    await tx.run(
        """
        INSERT INTO integrations (id, organization_id, project_id, mode, retention_days, sealed_secret, core_key_id,
                                  core_public_key, created_at)
        VALUES (%(id)s, %(organization_id)s, %(project_id)s, %(mode)s, %(retention_days)s, %(sealed_secret)s,
                %(core_key_id)s, %(core_public_key)s, %(created_at)s)
        """,
        {
            **asdict(integration),
            "sealed_secret": sealed_secret,
            "core_key_id": core_key.key_id,
            "core_public_key": core_key.public_key,
        },
    )


async def find(tx: Tx, workspace: Workspace, integration_id: str) -> Integration | None:
    """Return one integration of the project."""
    return await tx.one_or_none(Integration, _ONE, _make_params(workspace, integration_id))


async def find_workspace(db: Database, integration_id: str) -> Workspace | None:
    """Return the project of an integration of any tenant."""
    return await db.one_or_none(
        Workspace,
        "SELECT organization_id, project_id FROM integrations WHERE id = %(integration_id)s",
        {"integration_id": integration_id},
    )


async def lock(tx: Tx, workspace: Workspace, integration_id: str) -> Integration | None:
    """Lock one integration of the project until the transaction ends.

    Ingestion only reads the row, so it does not wait. Lock order: docs/locks.md.
    """
    return await tx.one_or_none(Integration, _ONE + "FOR NO KEY UPDATE", _make_params(workspace, integration_id))


async def get_number(tx: Tx, workspace: Workspace, integration_id: str) -> int:
    """Return the number that represents an existing integration in the rows of its events."""
    number: int | None = await tx.value(
        """
        SELECT number
          FROM integrations
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND id = %(integration_id)s
        """,
        _make_params(workspace, integration_id),
    )
    assert number is not None, "the caller found the integration"
    return number


async def list_newest_first(tx: Tx, workspace: Workspace, *, before: Position | None, limit: int) -> list[Integration]:
    """Return up to `limit` integrations of the project, newest first."""
    return await tx.all(
        Integration,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
        """
        + NEWEST_FIRST,
        {
            "organization_id": workspace.organization_id,
            "project_id": workspace.project_id,
            **page_params(before, limit),
        },
    )


async def list_oldest_first(
    tx: Tx, organization_id: str, *, project_id: str | None, after: Position, limit: int
) -> list[Integration]:
    """Return up to `limit` integrations of the organisation, or of one project, oldest first, behind `after`."""
    return await tx.all(
        Integration,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND (%(project_id)s::text IS NULL OR project_id = %(project_id)s)
           AND (created_at, id) > (%(after_at)s::timestamptz, %(after_id)s::text)
         ORDER BY created_at, id
         LIMIT %(limit)s
        """,
        {
            "organization_id": organization_id,
            "project_id": project_id,
            "after_at": after.created_at,
            "after_id": after.id,
            "limit": limit,
        },
    )


async def update_revoked(tx: Tx, workspace: Workspace, integration_id: str, *, now: datetime) -> None:
    """Mark a locked integration revoked."""
    await tx.run(
        """
        UPDATE integrations
           SET revoked_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND id = %(integration_id)s
        """,
        {**_make_params(workspace, integration_id), "now": now},
    )


async def update_secret(
    tx: Tx, workspace: Workspace, integration_id: str, *, sealed_secret: bytes, now: datetime
) -> None:
    """Rotate the HMAC secret of an integration."""
    await tx.run(
        """
        UPDATE integrations
           SET sealed_secret = %(sealed_secret)s,
               secret_rotated_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND id = %(integration_id)s
        """,
        {**_make_params(workspace, integration_id), "sealed_secret": sealed_secret, "now": now},
    )


async def update_retention(tx: Tx, workspace: Workspace, integration_id: str, *, retention_days: int) -> None:
    """Set how many days an integration's data is kept."""
    await tx.run(
        """
        UPDATE integrations
           SET retention_days = %(retention_days)s
         WHERE organization_id = %(organization_id)s
           AND project_id = %(project_id)s
           AND id = %(integration_id)s
        """,
        {**_make_params(workspace, integration_id), "retention_days": retention_days},
    )


async def lock_unrevoked(tx: Tx, *, after: str | None, limit: int) -> list[str]:
    """Lock up to `limit` unrevoked integrations, of every tenant, with ids after `after`; return their ids, ascending.

    Lock order: docs/locks.md.
    """
    rows = await tx.all(
        _Id,
        """
        SELECT id
          FROM integrations
         WHERE revoked_at IS NULL
           AND (%(after)s::text IS NULL OR id > %(after)s::text)
         ORDER BY id
         LIMIT %(limit)s
           FOR NO KEY UPDATE
        """,
        {"after": after, "limit": limit},
    )
    return [row.id for row in rows]


async def update_core_key(
    tx: Tx, integration_ids: Sequence[str], core_key: TrustedKey, *, previous_until: datetime
) -> None:
    """Make integrations trust `core_key`, and their key before it until `previous_until`.

    One that trusts `core_key` already is left as it is.
    """
    await tx.run(
        """
        UPDATE integrations
           SET previous_key_id = core_key_id,
               previous_public_key = core_public_key,
               previous_until = %(previous_until)s,
               core_key_id = %(key_id)s,
               core_public_key = %(public_key)s
         WHERE id = ANY(%(integration_ids)s)
           AND (core_key_id, core_public_key) IS DISTINCT FROM (%(key_id)s, %(public_key)s)
        """,
        {
            "integration_ids": list(integration_ids),
            "previous_until": previous_until,
            "key_id": core_key.key_id,
            "public_key": core_key.public_key,
        },
    )


async def update_previous_until(
    tx: Tx, integration_ids: Sequence[str], key_id: str, *, previous_until: datetime
) -> None:
    """Make integrations whose previous key is `key_id` trust it until `previous_until` at least."""
    await tx.run(
        """
        UPDATE integrations
           SET previous_until = %(previous_until)s
         WHERE id = ANY(%(integration_ids)s)
           AND previous_key_id = %(key_id)s
           AND previous_until < %(previous_until)s
        """,
        {"integration_ids": list(integration_ids), "key_id": key_id, "previous_until": previous_until},
    )


async def count_unrevoked(tx: Tx, organization_id: str) -> dict[AudienceMode, int]:
    """Return the number of an organisation's unrevoked integrations by mode; a mode without any is missing."""
    rows = await tx.all(
        _Count,
        """
        SELECT mode, count(*) AS count
          FROM integrations
         WHERE organization_id = %(organization_id)s
           AND revoked_at IS NULL
         GROUP BY mode
        """,
        {"organization_id": organization_id},
    )
    return {row.mode: row.count for row in rows}


def _make_params(workspace: Workspace, integration_id: str) -> dict[str, str]:
    return {
        "organization_id": workspace.organization_id,
        "project_id": workspace.project_id,
        "integration_id": integration_id,
    }
