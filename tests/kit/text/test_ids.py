"""Identifiers and secrets."""

import re

import pytest

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.text.ids import may_be_id, mint, mint_secret


class Counting:
    """Predictable entropy."""

    def take(self, size: int) -> bytes:
        return bytes(range(size))


def test_an_id_is_its_prefix_and_22_characters() -> None:
    assert re.fullmatch(r"org_[A-Za-z0-9_-]{22}", mint(SystemEntropy(), "org_"))


def test_a_token_can_be_shorter() -> None:
    assert re.fullmatch(r"brd_[A-Za-z0-9_-]{16}", mint(SystemEntropy(), "brd_", 16))


def test_a_secret_carries_256_bits() -> None:
    assert re.fullmatch(r"xop_[A-Za-z0-9_-]{43}", mint_secret(SystemEntropy(), "xop_"))


def test_every_character_comes_from_the_entropy() -> None:
    assert mint(Counting(), "xr_") == "xr_AAECAwQFBgcICQoLDA0ODx"
    assert mint_secret(Counting(), "xak_") == "xak_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"


def test_ids_do_not_repeat() -> None:
    entropy = SystemEntropy()
    assert len({mint(entropy, "xr_") for _ in range(10_000)}) == 10_000


def test_entropy_returns_any_size_and_repeats_nothing() -> None:
    """Also across the borders of its blocks."""
    entropy = SystemEntropy()
    taken = [entropy.take(size) for size in (16, 4096, 33, 5000, 4090, 16, 16)]
    assert [len(piece) for piece in taken] == [16, 4096, 33, 5000, 4090, 16, 16]
    assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("text", ["org_a", "xr_" + "a" * 128, "prj_A-_9"])
def test_this_may_be_an_id(text: str) -> None:
    assert may_be_id(text)


def test_this_is_no_id(subtests: pytest.Subtests) -> None:
    for text in ["", "org", "org_", "_a", "ORG_a", "org_a\n", "org_ä", "org_a b", "org_" + "a" * 129, "o_a", "org_１"]:
        with subtests.test(text=text):
            assert not may_be_id(text)
