"""Everything that a database holds, to be compared before and after."""

from typing import Any, Final

from support.database.rival import Rival

# A running Core seals the audit log in its own time, whatever is called.
_SEALING: Final = {"alembic_version", "audit_unsealed", "audit_seals", "audit_heads", "audit_unlogged"}


async def read_content(rival: Rival, *, with_jobs: bool = False, without: str | None = None) -> list[Any]:
    """Return the number of rows and a digest of each table, without `last_used_at`, which every use of a key changes.

    With jobs, the tables of the queue are included; the rows of the organisation `without` are left out.
    """
    rows = await rival.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    names = [name for (name,) in rows if name not in _SEALING and (with_jobs or not name.startswith("procrastinate_"))]
    parts = [
        f"SELECT '{name}', count(*), md5(string_agg(row::text, ',' ORDER BY row::text)) "
        f"FROM (SELECT to_jsonb(t) - 'last_used_at' AS row FROM {name} t) AS rows "
        "WHERE row ->> 'organization_id' IS DISTINCT FROM %s"
        for name in names
    ]
    return await rival.rows(" UNION ALL ".join(parts) + " ORDER BY 1", *[without] * len(parts))
