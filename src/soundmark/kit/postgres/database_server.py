"""Which server answers a connection: after a failover, not every connection ends at the same one."""

from collections.abc import Sequence
from typing import Any, Final, LiteralString, NamedTuple

from soundmark.kit.postgres.transaction import Tx

FIRST_TIMELINE: Final = "00000001"  # Of a cluster in which no standby was ever promoted.

# The timeline comes from the log's position: `pg_control_checkpoint` shows the new one only after the first checkpoint,
# which may be minutes later.
DESCRIBE_SERVER: Final[LiteralString] = """
    SELECT pg_is_in_recovery(),
           CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END,
           pg_postmaster_start_time()::text,
           current_setting('synchronous_standby_names') <> ''
    """


class DatabaseServer(NamedTuple):
    """A run of a server, and whether its commits wait for a synchronous standby.

    `timeline` is the number of promotions, as eight hexadecimal digits, and None on a standby. With `started_at`, it
    tells every two servers apart that accept writes.
    """

    is_standby: bool
    timeline: str | None
    started_at: str
    has_synchronous_standby: bool

    def is_same_run(self, other: "DatabaseServer | None") -> bool:
        """Return whether both describe the same server, started once and not promoted in between."""
        return other is not None and (self.timeline, self.started_at) == (other.timeline, other.started_at)


async def read_server(tx: Tx) -> DatabaseServer:
    """Return the server on which the transaction runs."""
    return parse_server(await tx.rows(DESCRIBE_SERVER))


def parse_server(rows: Sequence[tuple[Any, ...]]) -> DatabaseServer:
    """Return the server from the rows of `DESCRIBE_SERVER`."""
    (row,) = rows
    return DatabaseServer._make(row)
