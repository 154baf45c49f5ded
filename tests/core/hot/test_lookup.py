"""A batch of questions: one query, one outcome for each, and no question that is asked again."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from soundmark.core.hot.answers import Question
from soundmark.core.hot.lookup import BroadcastLookup
from soundmark.kit.http.responses.problems import DatabaseUnavailable, InternalError
from soundmark.kit.postgres.database_server import DatabaseServer
from soundmark.kit.postgres.shared_connection import PrefacedRows

PRIMARY = DatabaseServer(is_standby=False, timeline="00000002", started_at="2026-11-26", has_synchronous_standby=True)
QUESTIONS = [Question("brd_" + letter * 16, wants_proof=True) for letter in "ab"]


class HeldAnswers:
    """Answers each question with its token, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[Sequence[Question]] = []

    async def of(self, questions: Sequence[Question], found: dict[str, Any]) -> list[bytes]:
        self.asked.append(questions)
        assert found == {}
        if self.error is not None:
            raise self.error
        return [question.token.encode() for question in questions]


class HeldConnection:
    """A connection whose query finds nothing, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.is_closed = False
        self.runs_count = 0

    async def run_prefaced(self, *_: Any, is_repeatable: bool) -> PrefacedRows:
        assert is_repeatable
        self.runs_count += 1
        if self.error is not None:
            raise self.error
        return PrefacedRows([tuple(PRIMARY)], [[]])

    async def aclose(self) -> None:
        self.is_closed = True


class HeldLease:
    """A lease that covers a server or not, in the order given, and then always. Each question is anticipated."""

    def __init__(self, *covered: bool) -> None:
        self.covered = list(covered)
        self.is_anticipated = False

    def anticipate(self) -> None:
        self.is_anticipated = True

    async def covers(self, server: DatabaseServer) -> bool:
        assert (server, self.is_anticipated) == (PRIMARY, True)
        self.is_anticipated = False
        return self.covered.pop(0) if self.covered else True


async def ask_all(lookup: BroadcastLookup) -> list[Any]:
    return list(await asyncio.gather(*(lookup.ask(question) for question in QUESTIONS)))


async def test_questions_that_arrive_together_share_a_query_and_are_counted() -> None:
    answers = HeldAnswers()
    names = [f"soundmark_resolve_batch_size_{name}" for name in ("count", "sum")]
    before = [REGISTRY.get_sample_value(name) or 0 for name in names]

    assert await ask_all(BroadcastLookup(HeldConnection(), HeldLease(), answers)) == [
        one.token.encode() for one in QUESTIONS
    ]

    assert answers.asked == [QUESTIONS]
    assert [REGISTRY.get_sample_value(name) for name in names] == [before[0] + 1, before[1] + 2]


@pytest.mark.parametrize(
    ("error", "outcome", "logged"),
    [(DatabaseUnavailable(), DatabaseUnavailable, []), (ValueError(), InternalError, ["answers_failed"])],
    ids=["problem", "error"],
)
async def test_answers_that_fail_are_the_outcome_of_each_question_and_not_asked_for_again(
    error: Exception, outcome: type[Exception], logged: list[str]
) -> None:
    answers = HeldAnswers(error)
    with capture_logs() as logs:
        outcomes = await ask_all(BroadcastLookup(HeldConnection(), HeldLease(), answers))
    assert [type(each) for each in outcomes] == [outcome] * 2
    assert (len(answers.asked), [line["event"] for line in logs]) == (1, logged)


async def test_a_query_that_fails_in_any_way_is_an_unavailable_database() -> None:
    with capture_logs() as logs:
        outcomes = await ask_all(BroadcastLookup(HeldConnection(ValueError("MARK")), HeldLease(), HeldAnswers()))
    assert [type(each) for each in outcomes] == [DatabaseUnavailable] * 2
    assert [(line["event"], line["error"]) for line in logs] == [("lookup_failed", "ValueError")]


@pytest.mark.parametrize(
    ("covered", "outcome"), [((False, True), bytes), ((False, False), DatabaseUnavailable)], ids=["next", "neither"]
)
async def test_a_server_that_the_lease_does_not_cover_is_left_for_another_connection_once(
    covered: tuple[bool, ...], outcome: type[object]
) -> None:
    connection, answers = HeldConnection(), HeldAnswers()
    outcomes = await ask_all(BroadcastLookup(connection, HeldLease(*covered), answers))
    assert [type(each) for each in outcomes] == [outcome] * 2
    assert (connection.runs_count, connection.is_closed) == (2, True)
    assert len(answers.asked) == (outcome is bytes)


async def test_when_it_stops_waiting_questions_are_cancelled_and_the_connection_is_closed() -> None:
    connection = HeldConnection()
    lookup = BroadcastLookup(connection, HeldLease(), HeldAnswers())
    waiting = lookup.ask(QUESTIONS[0])
    await asyncio.sleep(0)
    await lookup.aclose()
    assert (waiting.cancelled(), connection.is_closed) == (True, True)
