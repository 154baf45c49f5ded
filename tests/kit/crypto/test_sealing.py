"""Envelopes bound to their place."""

import pytest

from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.text import base64url

MASTER_KEY = bytes(range(32))
PLACE = {"table": "signing_keys", "column": "sealed_seed", "row": "sig_1"}
PLAINTEXT = b"the seed of a key"


@pytest.fixture
def sealer() -> Sealer:
    """A sealer."""
    return Sealer(MASTER_KEY, SystemEntropy())


@pytest.fixture
def envelope(sealer: Sealer) -> bytes:
    """A sealed text."""
    return sealer.seal(PLAINTEXT, **PLACE)


def test_a_sealed_value_opens_at_its_place(sealer: Sealer, envelope: bytes) -> None:
    assert sealer.unseal(envelope, **PLACE) == PLAINTEXT
    assert Sealer(MASTER_KEY, SystemEntropy()).unseal(envelope, **PLACE) == PLAINTEXT


def test_an_envelope_does_not_show_its_content(sealer: Sealer, envelope: bytes) -> None:
    assert PLAINTEXT not in envelope
    assert sealer.seal(PLAINTEXT, **PLACE) != envelope, "equal secrets are not seen to be equal"


@pytest.mark.parametrize("part", PLACE)
def test_an_envelope_that_was_moved_does_not_open(sealer: Sealer, envelope: bytes, part: str) -> None:
    with pytest.raises(SealBroken):
        sealer.unseal(envelope, **{**PLACE, part: "elsewhere"})


def test_parts_of_a_place_do_not_run_into_each_other(sealer: Sealer) -> None:
    envelope = sealer.seal(PLAINTEXT, table="ab", column="c", row="d")
    with pytest.raises(SealBroken):
        sealer.unseal(envelope, table="a", column="bc", row="d")


def test_another_master_key_does_not_open(envelope: bytes) -> None:
    other = Sealer(bytes(32), SystemEntropy())
    with pytest.raises(SealBroken, match="another master key"):
        other.unseal(envelope, **PLACE)


def test_no_altered_byte_opens(sealer: Sealer, envelope: bytes) -> None:
    for position in range(len(envelope)):
        altered = bytearray(envelope)
        altered[position] ^= 1
        with pytest.raises(SealBroken):
            sealer.unseal(bytes(altered), **PLACE)


def test_no_shortened_or_lengthened_envelope_opens(sealer: Sealer, envelope: bytes) -> None:
    for altered in [*(envelope[:size] for size in range(len(envelope))), envelope + b"\0"]:
        with pytest.raises(SealBroken):
            sealer.unseal(altered, **PLACE)


def test_a_failure_does_not_reveal_the_secret(sealer: Sealer, envelope: bytes) -> None:
    with pytest.raises(SealBroken) as failure:
        sealer.unseal(envelope[:-1], **PLACE)
    assert PLAINTEXT.decode() not in str(failure.value)


def test_derived_keys_depend_on_purpose_and_master_key_only(sealer: Sealer) -> None:
    assert sealer.derive("cursors") == Sealer(MASTER_KEY, SystemEntropy()).derive("cursors")
    keys = {sealer.derive("cursors"), sealer.derive("sealing"), Sealer(bytes(32), SystemEntropy()).derive("cursors")}
    assert len(keys) == 3
    assert all(len(key) == 32 for key in keys)


def test_a_master_key_is_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Sealer(bytes(31), SystemEntropy())


def test_a_master_key_is_read_from_base64url() -> None:
    assert parse_master_key(base64url.encode(MASTER_KEY) + "\n") == MASTER_KEY


def test_another_master_key_is_refused_without_repeating_it(subtests: pytest.Subtests) -> None:
    for text in ["", "secret", base64url.encode(bytes(31)), base64url.encode(bytes(33)), "A" * 42 + "=", "+" * 43]:
        with subtests.test(text=text):
            with pytest.raises(ValueError, match="must be 32 bytes") as refusal:
                parse_master_key(text)
            assert not text or text not in str(refusal.value)
