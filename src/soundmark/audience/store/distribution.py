"""Whether an engine beneath PostgreSQL has distributed Audience's tables over servers, as Citus does with a schema."""

from soundmark.kit.postgres.transaction import Tx


async def is_distributed(tx: Tx) -> bool:
    """Return whether Audience's tables are on other servers than the one that answers.

    Such a server has no file of a table, cannot plan without the values, and shares no snapshot with the others.
    """
    if not await tx.value("SELECT to_regclass('pg_dist_partition') IS NOT NULL"):
        return False
    return bool(await tx.value("SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = 'events'::regclass)"))
