"""Core without its transparency log, to measure the log's cost in issuing: Codes are inserted, and nothing queued."""

from collections.abc import Sequence
from typing import Final

from soundmark.core.domain.codes.code import Code
from soundmark.core.domain.log.entry import SignedRecord
from soundmark.core.features.codes.issuance import issue_group
from soundmark.core.store.codes import codes
from soundmark.kit.postgres.pipelined_tx import PipelinedTx
from soundmark.kit.postgres.transaction import AnyTx, Params

SETTING: Final = "BENCH_UNLOGGED"  # Set to anything, it makes `bench.server` serve this.
_LOGGED: Final = """
        ), logged AS (
            INSERT INTO log_queue (kind, count, content)
            VALUES ('code.issued', %(count)s::int, %(commitments)s::bytea)
        )
"""
_insert: Final = codes.insert


def install() -> None:
    """Make this process issue Codes whose statement does not name the log, and whose entries nobody makes."""
    codes.insert = _insert_unlogged
    issue_group.commit_issued = _nothing  # type: ignore[attr-defined]  # imported there by name


def _nothing(issued: Sequence[SignedRecord]) -> bytes:
    _ = issued
    return b""


async def _insert_unlogged(tx: AnyTx, issued: Sequence[Code], addresses: Sequence[bytes], commitments: bytes) -> None:
    _ = commitments
    await _insert(_Unlogged(tx), issued, addresses, b"")  # type: ignore[arg-type]  # it has what the function uses


class _Unlogged:
    """A transaction that runs the statement without its part for the log."""

    def __init__(self, tx: AnyTx) -> None:
        assert isinstance(tx, PipelinedTx), "issuing runs in one"
        self._tx: Final = tx

    async def run(self, statement: str, params: Params) -> None:
        shorter = _shortened.get(statement)
        if shorter is None:
            shorter = _shortened[statement] = statement.replace(_LOGGED, "\n        )\n")
            assert shorter != statement, "the statement has changed"
        await self._tx.run(shorter, {name: params[name] for name in params if name not in {"commitments", "count"}})


_shortened: Final[dict[str, str]] = {}
