"""Core whose look-up knows nothing of suspended organisations, to measure what they cost a resolution."""

from collections.abc import Iterable
from typing import Any, Final

from soundmark.core.hot import lookup
from soundmark.core.store.codes.broadcasts import Broadcast, find_live
from soundmark.kit.postgres.database_server import DatabaseServer
from soundmark.kit.postgres.link import Call
from soundmark.kit.postgres.shared_connection import SharedConnection

SETTING: Final = "BENCH_UNSUSPENDED"  # Set to anything, it makes `bench.server` serve this.
_SUSPENDED: Final = """
           AND NOT EXISTS (
               SELECT
                 FROM suspended_organizations
                WHERE suspended_organizations.organization_id = broadcasts.organization_id
           )
"""


def install() -> None:
    """Make this process look tokens up with a statement that does not name suspended organisations."""
    lookup.find_live = _find_any  # type: ignore[attr-defined]  # imported there by name


async def _find_any(connection: SharedConnection, tokens: Iterable[str]) -> tuple[dict[str, Broadcast], DatabaseServer]:
    return await find_live(_Shortening(connection), tokens)  # type: ignore[arg-type]  # it has what the function uses


class _Shortening:
    """A connection that runs the statement without its part for suspended organisations."""

    def __init__(self, connection: SharedConnection) -> None:
        self._connection: Final = connection

    async def run_prefaced(self, call: Call, *, is_repeatable: bool) -> Any:
        shorter = call.statement.replace(_SUSPENDED, "\n")
        assert shorter != call.statement, "the statement has changed"
        return await self._connection.run_prefaced(call._replace(statement=shorter), is_repeatable=is_repeatable)
