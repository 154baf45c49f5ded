"""Arrays as PostgreSQL reads them."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.arrays import bytes_array, plain_array, text_array, time_array

AWKWARD = ["", "NULL", "null", None, ",", "{", "}", '"', "\\", '\\"', " a ", "'", "\n", "ä€😀", "%s", "\\x00", "{}"]
# No NUL, which PostgreSQL texts cannot hold, and no surrogates, which are not characters.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)))


@pytest.fixture(scope="module")
def connection(cluster: RunningCluster) -> Iterator[psycopg.Connection]:
    """A connection that commits each statement."""
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as opened:
        yield opened


def read(connection: psycopg.Connection, text: str, kind: str) -> list[object]:
    row = connection.execute(f"SELECT %s::{kind}[]".encode(), [text]).fetchone()
    assert row is not None, "one row"
    return list(row[0])


@given(values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_numbers_come_back_as_they_were(connection: psycopg.Connection, values: list[int | None]) -> None:
    assert read(connection, plain_array(values), "bigint") == values


@given(values=st.lists(st.none() | st.dates()))
def test_days_come_back_as_they_were(connection: psycopg.Connection, values: list[date | None]) -> None:
    assert read(connection, plain_array(values), "date") == values


@given(values=st.lists(st.none() | TEXTS | st.sampled_from(AWKWARD)))
def test_texts_come_back_as_they_were(connection: psycopg.Connection, values: list[str | None]) -> None:
    assert read(connection, text_array(values), "text") == values


def test_every_awkward_text_comes_back(connection: psycopg.Connection) -> None:
    assert read(connection, text_array(AWKWARD), "text") == AWKWARD


@given(values=st.lists(st.binary()))
def test_bytes_come_back_as_they_were(connection: psycopg.Connection, values: list[bytes]) -> None:
    assert read(connection, bytes_array(values), "bytea") == values


ZONES = st.sampled_from([UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12, minutes=-30))])
INNER = {"min_value": datetime(1, 1, 3), "max_value": datetime(9999, 12, 29)}  # noqa: DTZ001 - the zones are drawn


@given(values=st.lists(st.datetimes(**INNER, timezones=ZONES)))
def test_times_come_back_as_they_were(connection: psycopg.Connection, values: list[datetime]) -> None:
    assert read(connection, time_array(values), "timestamptz") == values
