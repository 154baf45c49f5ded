"""Spans of the statements that go through libpq's pipeline."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind
from support.database.notes_table import write_note
from support.database.rival import Rival
from support.tracing.recorded import Recorded, attributes_of, recording

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.pipelined import PipelinedTransactions
from soundmark.kit.tracing.spans import Place, enter_job

_HIDDEN = "hidden"


@pytest.fixture
async def transactions(db: Database) -> AsyncIterator[PipelinedTransactions]:
    """Transactions on one connection, which their first one opens."""
    made = PipelinedTransactions(db, size=1)
    yield made
    await made.aclose()


def enter_work() -> Place:
    return enter_job("work", "internal", SystemEntropy(), None)


async def change(transactions: PipelinedTransactions, *texts: str) -> None:
    """Read in one round trip, and write and commit in the second."""
    async with transactions.transaction(tenant=_HIDDEN) as tx:
        await tx.value("SELECT text FROM notes WHERE text = %(text)s", {"text": _HIDDEN})
        async with tx.ending():
            for text in texts:
                await write_note(tx, text)


def statements(recorded: Recorded) -> list[ReadableSpan]:
    """Return the spans directly below the work, in the order in which they ended."""
    above = recorded.only("work").context
    assert above is not None
    return [span for span in recorded.spans if span.parent and span.parent.span_id == above.span_id]


async def test_each_statement_of_a_round_trip_is_a_span_without_its_parameters(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    assert kit_rival is not None, "the table is empty"
    with recording() as recorded:
        with enter_work():
            await change(transactions, _HIDDEN)
        await change(transactions, "outside of any work")
    made = statements(recorded)
    assert [span.name for span in made] == ["BEGIN", "SET", "SELECT notes", "INSERT INTO notes", "COMMIT"]
    assert {span.kind for span in made} == {SpanKind.CLIENT}
    assert attributes_of(made[1]) == {
        "db.system.name": "postgresql",
        "db.query.summary": "SET",
        "soundmark.pipelined": True,
    }
    assert attributes_of(made[2])["db.query.text"] == "SELECT text FROM notes WHERE text = $1"
    assert len(recorded.spans) == len(made) + 1
    assert _HIDDEN not in recorded.text()


async def test_a_statement_that_fails_and_those_after_it_have_the_kind_of_the_failure(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    await kit_rival.run("INSERT INTO notes VALUES ('there')")
    with recording() as recorded, enter_work(), pytest.raises(psycopg.errors.UniqueViolation):
        await change(transactions, "new", "there")
    errors = [(span.name, attributes_of(span).get("error.type")) for span in statements(recorded)]
    assert errors[3:] == [
        ("INSERT INTO notes", None),
        ("INSERT INTO notes", "UniqueViolation"),
        ("COMMIT", "UniqueViolation"),
        ("ROLLBACK", None),
    ]


async def test_a_statement_without_an_answer_ends_with_its_connection(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    with recording() as recorded:
        async with kit_rival.holding("LOCK TABLE notes IN SHARE MODE"):
            with enter_work():
                waiting = await kit_rival.while_waiting(change(transactions, "new"))
            await kit_rival.kill_waiting_sessions()
            with pytest.raises(DatabaseUnavailable):
                await waiting
    errors = [(span.name, attributes_of(span).get("error.type")) for span in statements(recorded)]
    assert errors[3:] == [("INSERT INTO notes", "OperationalError"), ("COMMIT", "OperationalError")]


async def test_a_connection_from_before_the_recording_has_no_spans(
    transactions: PipelinedTransactions, kit_rival: Rival
) -> None:
    assert kit_rival is not None, "the table is empty"
    await change(transactions, "before")
    with recording() as recorded, enter_work():
        await change(transactions, "after")
    assert statements(recorded) == []
