"""Check bytes against a sound of ggwave's, and against the property that defines them."""

import pytest

from soundmark.audio.reed_solomon import check_bytes


def test_a_payload_has_the_check_bytes_that_ggwave_sends() -> None:
    """Read from the tones of ggwave 0.4.3."""
    assert check_bytes(b"\x19", 2) == b"+2"
    assert check_bytes(b"XRC1:brd_aZ09-_bY18-_cX27", 10) == b"\nt\x12\xfbIU%%\xb7k"


def test_a_code_word_vanishes_at_each_root(subtests: pytest.Subtests) -> None:
    for data, count in [(b"\x19", 2), (bytes(25), 10), (bytes(range(231, 256)), 10), (b"\xff" * 25, 10)]:
        word = data + check_bytes(data, count)
        root = 1
        for _ in range(count):
            with subtests.test(data=data, root=root):
                value = 0
                for byte in word:
                    value = times(value, root) ^ byte
                assert value == 0
            root = times(root, 2)


def times(one: int, other: int) -> int:
    """Multiply in GF(256) as polynomials, modulo x^8 + x^4 + x^3 + x^2 + 1."""
    product = 0
    while other:
        if other & 1:
            product ^= one
        one = one << 1 ^ (0x11D if one & 0x80 else 0)
        other >>= 1
    return product
