"""Cursors that record a span for each statement, where a request or a job is recorded."""

import functools
import re
from typing import Any, Final, Self

from psycopg import AsyncCursor
from psycopg.pq import PipelineStatus

from soundmark.kit.tracing.spans import enter_child, is_recorded

# What a statement does, and to which table: of several, the first that is written, or else the first that is read.
_WRITES: Final = re.compile(r"\b(INSERT INTO|UPDATE|DELETE FROM)\s+([a-z_]+)")
_READS: Final = re.compile(r"\bFROM\s+([a-z_]+)\b(?!\s*\()")


class TracedCursor(AsyncCursor[Any]):
    """A cursor whose statements are spans, without their parameters.

    The text of a statement is recorded if it is written in the code; what was put together, such as the tenant of a
    transaction, is not. In a pipeline a span is the time of sending, and the answer comes later.
    """

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Self:
        """Execute a statement."""
        if not is_recorded():
            return await super().execute(query, params, **options)
        is_pipelined = self.connection.pgconn.pipeline_status != PipelineStatus.OFF
        name, attributes = describe_span(query, is_pipelined=is_pipelined)
        with enter_child(name, "client", attributes):
            return await super().execute(query, params, **options)


def describe_span(query: Any, *, is_pipelined: bool) -> tuple[str, dict[str, str | bool]]:
    """Return the name and the attributes of the span of `query`, which is a text only if it is written in the code."""
    name, text = describe(query) if isinstance(query, str) else (_first_word(query), "")
    attributes: dict[str, str | bool] = {"db.system.name": "postgresql", "db.query.summary": name}
    if text:
        attributes["db.query.text"] = text
    if is_pipelined:
        attributes["soundmark.pipelined"] = True
    return name, attributes


@functools.lru_cache(maxsize=1024)
def describe(statement: str) -> tuple[str, str]:
    """Return what a statement does, such as `UPDATE codes`, and its text on one line."""
    text = " ".join(statement.split())
    written = _WRITES.search(text)
    if written is not None:
        return f"{written[1]} {written[2]}", text
    read = _READS.search(text)
    if read is not None:
        return f"SELECT {read[1]}", text
    return text.partition(" ")[0], text


def _first_word(query: Any) -> str:
    """Return what a statement that was put together does; nothing else of it is known to be harmless."""
    return query.split(maxsplit=1)[0].decode() if isinstance(query, bytes) else "statement"
