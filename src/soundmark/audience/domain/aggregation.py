"""Counting events and the different tokens among them.

A token is 64 bits of a keyed digest, so any range of tokens is a fair share of an integration's events. No token is in
two ranges, so the counts of disjoint ranges add up, including the counts of different tokens. This bounds the memory of
a report of any size, and lets two processors work on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from soundmark.audience.domain.packing import RECEIVER_CLASSES

TOKEN_MIN: Final = -(2**63)
TOKEN_MAX: Final = 2**63 - 1
NO_COUNTRY: Final = -1
_COUNTRIES: Final = 26 * 26

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PackedDay:
    """The events of one day in a range of tokens, by ascending token: numbers one after the other, big-endian.

    `day` counts from the first day of the report. Tokens have eight bytes, Codes four, receivers and countries two.
    """

    day: int
    tokens: bytes
    codes: bytes
    receivers: bytes
    countries: bytes


@dataclass(frozen=True, slots=True)
class Codes:
    """The Codes of an integration: their numbers, ascending, and for each the first number of its campaign's Codes.

    That number stands for the campaign; Codes without a campaign share one, too.
    """

    numbers: Numbers
    campaigns: Numbers


@dataclass(frozen=True, slots=True)
class Reached:
    """For each key, the number of its events and of the different tokens among them."""

    events: Numbers
    tokens: Numbers

    def __add__(self, other: "Reached") -> "Reached":
        return Reached(self.events + other.events, self.tokens + other.tokens)

    def keys(self) -> list[int]:
        """Return the keys that have events."""
        return [int(key) for key in np.flatnonzero(self.events)]


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts. Their keys are days, places in `Codes`, numbers of receivers, and numbers of countries plus 1.

    Codes of one campaign are counted at the place of its first. `frequencies` says at each place how many tokens have
    so many events.
    """

    events: int
    tokens: int
    frequencies: Numbers
    by_day: Reached
    by_campaign: Reached
    by_code: Reached
    by_receiver: Numbers
    by_country: Numbers

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(
            events=self.events + other.events,
            tokens=self.tokens + other.tokens,
            frequencies=_sum_of_unequal(self.frequencies, other.frequencies),
            by_day=self.by_day + other.by_day,
            by_campaign=self.by_campaign + other.by_campaign,
            by_code=self.by_code + other.by_code,
            by_receiver=self.by_receiver + other.by_receiver,
            by_country=self.by_country + other.by_country,
        )


def tally(days: Sequence[PackedDay], *, days_count: int, codes: Codes) -> Tally:
    """Count the events of a range of tokens; `days` must have all events of the report with these tokens."""
    tokens = _join([day.tokens for day in days], ">i8")
    code = np.searchsorted(codes.numbers, _join([day.codes for day in days], ">i4"))
    day = np.repeat(
        np.array([day.day for day in days], dtype=np.int64), np.array([len(day.tokens) // 8 for day in days], dtype=int)
    )
    campaign = np.searchsorted(codes.numbers, codes.campaigns)[code]
    receiver = _join([day.receivers for day in days], ">i2")
    country = _join([day.countries for day in days], ">i2")

    # Each day is ascending already, and a stable sort merges ascending runs.
    order = np.argsort(tokens, kind="stable")
    ascending = tokens[order]
    is_first = np.ones(len(tokens), dtype=bool)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    rank = np.cumsum(is_first) - 1
    each = np.diff(np.append(np.flatnonzero(is_first), len(tokens)))

    def reached(key: Numbers, count: int) -> Reached:
        pairs = np.sort(rank * count + key[order])
        different = pairs[np.append(True, pairs[1:] != pairs[:-1])] if len(pairs) else pairs
        return Reached(_counts(key, count), _counts(different % count, count))

    return Tally(
        events=len(tokens),
        tokens=len(each),
        frequencies=np.bincount(each).astype(np.int64),
        by_day=reached(day, days_count),
        by_campaign=reached(campaign, max(1, len(codes.numbers))),
        by_code=reached(code, max(1, len(codes.numbers))),
        by_receiver=_counts(receiver, len(RECEIVER_CLASSES)),
        by_country=_counts(country - NO_COUNTRY, _COUNTRIES + 1),
    )


def ranges_of_tokens(first: int, count: int) -> list[tuple[int, int]]:
    """Divide all tokens from `first` on into `count` ranges of one size; return the first and last token of each."""
    size = -(-(TOKEN_MAX - first + 1) // count)
    begins = range(first, TOKEN_MAX + 1, size)
    return [(begin, min(begin + size - 1, TOKEN_MAX)) for begin in begins]


def _join(parts: Sequence[bytes], kind: str) -> Numbers:
    return np.frombuffer(b"".join(parts), dtype=np.dtype(kind)).astype(np.int64)


def _counts(keys: npt.NDArray[Any], count: int) -> Numbers:
    return np.bincount(keys, minlength=count).astype(np.int64)


def _sum_of_unequal(one: Numbers, other: Numbers) -> Numbers:
    shorter, longer = sorted((one, other), key=len)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total
