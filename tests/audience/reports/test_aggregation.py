"""Counting by ranges of tokens, without a database."""

import itertools
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soundmark.audience.domain.aggregation import (
    NO_COUNTRY,
    TOKEN_MAX,
    TOKEN_MIN,
    Codes,
    Numbers,
    PackedDay,
    Tally,
    ranges_of_tokens,
    tally,
)

DAYS = 3
CODES = Codes(numbers=np.array([4, 9, 12]), campaigns=np.array([4, 4, 12]))
# A day, a token, and the numbers of a Code, a receiver and a country.
Row = tuple[int, int, int, int, int]


def make_rows(chance: Random) -> list[Row]:
    """Return events of few tokens, of which each day has a token at most once for a Code."""
    rows = {
        (chance.randrange(DAYS), chance.choice([TOKEN_MIN, -7, 0, 5, TOKEN_MAX]), chance.choice([4, 9, 12]))
        for _ in range(30)
    }
    return sorted((*row, chance.randrange(9), chance.choice([NO_COUNTRY, 0, 675])) for row in rows)


def pack(rows: list[Row]) -> list[PackedDay]:
    """Return the rows as the store reads them."""

    def column(day: list[Row], place: int, size: int) -> bytes:
        return b"".join(row[place].to_bytes(size, "big", signed=True) for row in day)

    days = [(number, [row for row in rows if row[0] == number]) for number in range(DAYS)]
    return [
        PackedDay(number, column(day, 1, 8), column(day, 2, 4), column(day, 3, 2), column(day, 4, 2))
        for number, day in days
        if day
    ]


def count(rows: list[Row]) -> Tally:
    return tally(pack(rows), days_count=DAYS, codes=CODES)


def as_counts(numbers: Numbers) -> dict[int, int]:
    return {place: int(number) for place, number in enumerate(numbers) if number}


def tokens_by(rows: list[Row], place: int, keys: dict[int, int]) -> dict[int, int]:
    """Return the number of different tokens for each key."""
    return dict(Counter(key for key, _ in {(keys[row[place]], row[1]) for row in rows}))


@given(chance=st.randoms(use_true_random=False))
@settings(max_examples=20, derandomize=True)
def test_a_tally_counts_events_and_different_tokens(chance: Random) -> None:
    rows = make_rows(chance)
    counted = count(rows)
    events_of = Counter(row[1] for row in rows)
    codes, campaigns, days = {4: 0, 9: 1, 12: 2}, {4: 0, 9: 0, 12: 2}, {day: day for day in range(DAYS)}
    assert (counted.events, counted.tokens) == (len(rows), len(events_of))
    assert as_counts(counted.frequencies) == dict(Counter(events_of.values()))
    for reached, place, keys in (
        (counted.by_day, 0, days),
        (counted.by_code, 2, codes),
        (counted.by_campaign, 2, campaigns),
    ):
        assert as_counts(reached.events) == dict(Counter(keys[row[place]] for row in rows))
        assert as_counts(reached.tokens) == tokens_by(rows, place, keys)
        assert reached.keys() == sorted({keys[row[place]] for row in rows})
    assert as_counts(counted.by_receiver) == dict(Counter(row[3] for row in rows))
    assert as_counts(counted.by_country) == dict(Counter(row[4] + 1 for row in rows))


@given(chance=st.randoms(use_true_random=False))
@settings(max_examples=20, derandomize=True)
def test_the_tallies_of_disjoint_ranges_add_up(chance: Random) -> None:
    rows = make_rows(chance)
    parts = [count([row for row in rows if row[1] < 0]), count([row for row in rows if row[1] >= 0])]
    total, whole = parts[0] + parts[1], count(rows)
    assert (total.events, total.tokens) == (whole.events, whole.tokens)
    for name in ("frequencies", "by_receiver", "by_country"):
        assert as_counts(getattr(total, name)) == as_counts(getattr(whole, name)), name
    for name in ("by_day", "by_campaign", "by_code"):
        added, expected = getattr(total, name), getattr(whole, name)
        assert as_counts(added.events) == as_counts(expected.events), name
        assert as_counts(added.tokens) == as_counts(expected.tokens), name


def test_tallies_without_a_common_key_add_up() -> None:
    """A range of tokens may have only the first keys, and another only the last."""
    total = count([(0, TOKEN_MIN, 4, 0, NO_COUNTRY)]) + count([(DAYS - 1, TOKEN_MAX, 12, 8, 675)])
    assert as_counts(total.by_country) == {0: 1, 676: 1}
    assert as_counts(total.by_receiver) == {0: 1, 8: 1}
    assert (total.by_day.keys(), total.by_code.keys(), total.by_campaign.keys()) == ([0, DAYS - 1], [0, 2], [0, 2])


def test_no_event_is_an_empty_tally() -> None:
    counted = tally([], days_count=1, codes=Codes(np.array([], dtype=np.int64), np.array([], dtype=np.int64)))
    assert (counted.events, counted.tokens) == (0, 0)
    assert (counted.by_day.keys(), counted.by_code.keys(), counted.by_campaign.keys()) == ([], [], [])


def test_ranges_cover_every_token_once_and_evenly(subtests: pytest.Subtests) -> None:
    for ranges_count in [1, 2, 3, 7, 64]:
        for first in [-(2**63), -(2**63) + 5, 0, 2**62]:
            with subtests.test(ranges_count=ranges_count, first=first):
                ranges = ranges_of_tokens(first, ranges_count)
                assert len(ranges) == ranges_count
                assert (ranges[0][0], ranges[-1][1]) == (first, 2**63 - 1)
                assert all(following[0] == last + 1 for (_, last), following in itertools.pairwise(ranges))
                sizes = [last - begin + 1 for begin, last in ranges]
                assert set(sizes[:-1]) <= {sizes[0]}
                assert sizes[0] - ranges_count < sizes[-1] <= sizes[0]


def test_a_last_range_may_hold_one_token() -> None:
    assert ranges_of_tokens(2**63 - 3, 2) == [(2**63 - 3, 2**63 - 2), (2**63 - 1, 2**63 - 1)]
