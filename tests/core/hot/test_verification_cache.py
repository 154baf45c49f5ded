"""The cache of verified bytes."""

import itertools

import pytest

from soundmark.core.hot import verification_cache
from soundmark.core.hot.verification_cache import VerificationCache
from soundmark.kit.crypto.entropy import SystemEntropy


@pytest.fixture
def memory() -> VerificationCache:
    """An empty cache."""
    return VerificationCache(SystemEntropy())


def test_only_added_bytes_are_known(memory: VerificationCache) -> None:
    for number in range(1000):
        memory.add(*memory.tag(b"%d" % number))
    assert all(memory.holds(*memory.tag(b"%d" % number)) for number in range(1000))
    assert not any(memory.holds(*memory.tag(b"%d" % number)) for number in range(1000, 100_000))


def test_every_part_counts(memory: VerificationCache) -> None:
    memory.add(*memory.tag(b"a", b"b", b"c"))
    assert memory.holds(*memory.tag(b"a", b"b", b"c"))
    for parts in itertools.product((b"a", b"x"), (b"b", b"x"), (b"c", b"x", b"")):
        assert memory.holds(*memory.tag(*parts)) == (parts == (b"a", b"b", b"c"))


def test_of_three_in_one_place_the_first_is_forgotten(memory: VerificationCache) -> None:
    for tag in (1, 2, 3):
        memory.add(6, tag)
    assert [memory.holds(6, tag) for tag in (1, 2, 3)] == [False, True, True]
    assert not memory.holds(8, 3), "places do not run into one another"


def test_an_empty_place_holds_nothing(memory: VerificationCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even bytes whose tag equals an empty place."""

    class Zeros:
        def copy(self) -> "Zeros":
            return self

        def update(self, _: bytes) -> None:
            pass

        def digest(self) -> bytes:
            return bytes(32)

    monkeypatch.setattr(memory, "_keyed", Zeros())
    place, tag = memory.tag(b"")
    assert (place, memory.holds(place, tag)) == (0, False)


def test_two_processes_remember_under_different_tags() -> None:
    """Otherwise somebody could search offline for bytes that are mistaken for others."""
    assert VerificationCache(SystemEntropy()).tag(b"a") != VerificationCache(SystemEntropy()).tag(b"a")


def test_the_last_place_can_be_used(memory: VerificationCache) -> None:
    last = (verification_cache._SETS - 1) * 2
    memory.add(last, 7)
    assert memory.holds(last, 7)


def test_the_cache_takes_32_mebibytes(memory: VerificationCache) -> None:
    assert memory._tags.nbytes == 32 * 1024**2


def test_bytes_are_spread_over_pairs_of_tags(memory: VerificationCache) -> None:
    """Places that were odd would share a tag with their neighbours, and each would evict the other's."""
    places = [memory.tag(b"%d" % number)[0] for number in range(1000)]
    assert {place % 2 for place in places} == {0}
    assert min(places) < len(memory._tags) // 4
    assert max(places) > len(memory._tags) * 3 // 4
