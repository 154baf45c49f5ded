"""A shelf keeps few packs, and answers as if it kept all of them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soundmark_sdk import OfflinePack, find_in_packs
from soundmark_sdk.receiver.pack_shelf import PACKS_MAX, PackShelf

from .issuer import NOW, timestamp
from .stand_ins import FakeClock
from .test_offline_pack import CAMPAIGN, TOKENS, make_codes, make_pack

MINUTE: Final = timedelta(minutes=1)
CAMPAIGNS: Final = (None, CAMPAIGN, CAMPAIGN[:-1] + "G")


@pytest.fixture
def shelf(clock: FakeClock) -> PackShelf:
    """A shelf of a receiver that does not require the log."""
    return PackShelf(clock, None)


def pack_of(minute: int, campaign_id: str | None = None, *, life: timedelta = timedelta(hours=6)) -> OfflinePack:
    """Return a pack of a minute of the day, in which the first Code was revoked in the tenth minute."""
    at = NOW + minute * MINUTE
    codes = make_codes(1) if minute >= 10 else make_codes(0, 1)
    return make_pack(at, campaign_id=campaign_id, codes=codes, valid_until=timestamp(at + life))


def fill(shelf: PackShelf, packs: Sequence[OfflinePack]) -> list[OfflinePack]:
    for pack in packs:
        shelf.add(pack)
    return list(shelf.packs)


def test_the_same_pack_is_kept_once_with_its_proof_if_it_came_with_one(shelf: PackShelf) -> None:
    bare = pack_of(0)
    proven = replace(bare, proof=b"proof")
    assert fill(shelf, [bare, pack_of(0)]) == [bare]
    assert fill(shelf, [proven, bare]) == [proven]


def test_a_newer_pack_replaces_what_it_covers_if_it_lasts_as_long_or_the_other_ended(subtests: pytest.Subtests) -> None:
    hour = timedelta(hours=1)
    old, other = pack_of(0, CAMPAIGN), pack_of(1, CAMPAIGNS[2])
    for name, packs, expected in (
        ("the same campaign's", [old, newer := pack_of(5, CAMPAIGN)], [newer]),
        ("the project's", [old, newer := pack_of(5)], [newer]),
        ("the project's, which comes first", [newer := pack_of(5), old], [newer]),
        ("another campaign's", [old, other], [other, old]),
        ("a campaign's beside the project's", [pack_of(0), other], [other, pack_of(0)]),
        ("one that ends before", [old, short := pack_of(5, CAMPAIGN, life=hour)], [short, old]),
        ("an ended one", [pack_of(0, life=hour), short := pack_of(60, life=MINUTE)], [short]),
    ):
        with subtests.test(name):
            assert fill(PackShelf(FakeClock(), None), packs) == expected


def test_a_pack_without_a_proof_does_not_replace_one_that_has_it(shelf: PackShelf) -> None:
    proven, bare = replace(pack_of(0), proof=b"proof"), pack_of(1)
    assert fill(shelf, [proven, bare]) == [bare, proven]


def test_packs_of_more_than_a_day_ago_are_forgotten(shelf: PackShelf, clock: FakeClock) -> None:
    """All older ones have ended by then, so it cannot even silence."""
    for day in range(4):
        clock.at = NOW + timedelta(days=day)
        shelf.add(make_pack(clock.at, codes=make_codes(0), project_id=f"prj_{day}"))
    assert [pack.issued_at for pack in shelf.packs] == [clock.at]
    assert shelf.find(TOKENS[0]) is not None


def test_a_full_shelf_forgets_the_oldest_and_takes_nothing_as_old(shelf: PackShelf) -> None:
    """What it forgot may have silenced what is older still."""
    packs = [make_pack(NOW + number * MINUTE, project_id=f"prj_{number}") for number in range(PACKS_MAX + 2)]
    kept = packs[:1:-1]
    assert fill(shelf, packs) == kept
    older = make_pack(NOW + timedelta(seconds=30), project_id="prj_1")
    assert fill(shelf, [older, packs[0]]) == kept
    newer = make_pack(NOW + timedelta(hours=1), project_id=f"prj_{PACKS_MAX}")
    later = make_pack(NOW + timedelta(hours=2), project_id=f"prj_{PACKS_MAX + 1}")
    assert len(fill(shelf, [newer, later, newer])) == PACKS_MAX


def test_a_pack_from_the_end_of_time_is_one_of_the_future(shelf: PackShelf, clock: FakeClock) -> None:
    end = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    times = {"issued_at": timestamp(end - MINUTE), "valid_until": timestamp(end)}
    fill(shelf, [pack_of(0), make_pack(**times, project_id="prj_other")])
    clock.advance(3600)
    assert shelf.find(TOKENS[0]) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from(CAMPAIGNS), st.integers(5, 40)), min_size=1, max_size=8
    ).flatmap(st.permutations),
    st.integers(0, 60),
)
@settings(max_examples=60, deadline=None)
def test_it_answers_as_if_it_kept_every_pack(wanted: list[tuple[int, str | None, int]], minute: int) -> None:
    packs = [pack_of(at, campaign_id, life=life * MINUTE) for at, campaign_id, life in wanted]
    now = max(NOW + minute * MINUTE, *(pack.issued_at for pack in packs))
    shelf = PackShelf(FakeClock(at=now), None)
    kept = fill(shelf, packs)
    for token in TOKENS:
        assert shelf.find(token) == find_in_packs(packs, token, now), kept
