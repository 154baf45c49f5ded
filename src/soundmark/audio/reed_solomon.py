"""Check bytes of Reed–Solomon codes over GF(256), as every ggwave receiver corrects by them."""

from typing import Final

_POLYNOMIAL: Final = 0x11D
_ORDER: Final = 255  # Powers of 2 repeat after so many.


def check_bytes(data: bytes, count: int) -> bytes:
    """Return the `count` bytes that follow `data` in its code word.

    The code word, as a polynomial, vanishes at 2^0 to 2^(count-1).
    """
    generator = _generator(count)
    remainder = bytearray(count)
    for byte in data:
        factor = byte ^ remainder[0]
        remainder = remainder[1:] + b"\0"
        for place, coefficient in enumerate(generator):
            remainder[place] ^= _multiply(factor, coefficient)
    return bytes(remainder)


def _generator(count: int) -> list[int]:
    """Return the coefficients below the leading one, highest power first."""
    coefficients = [1]
    for root in range(count):
        shifted = [*coefficients, 0]
        for place, coefficient in enumerate(coefficients, 1):
            shifted[place] ^= _multiply(coefficient, _POWERS[root])
        coefficients = shifted
    return coefficients[1:]


def _multiply(one: int, other: int) -> int:
    return _POWERS[_LOGARITHMS[one] + _LOGARITHMS[other]] if one and other else 0


def _powers() -> list[int]:
    powers = [1]
    while len(powers) < 2 * _ORDER:  # Twice, so that the sum of two logarithms needs no modulo.
        doubled = powers[-1] << 1
        powers.append(doubled ^ _POLYNOMIAL if doubled > _ORDER else doubled)
    return powers


_POWERS: Final = _powers()
_LOGARITHMS: Final = {power: exponent for exponent, power in enumerate(_POWERS[:_ORDER])}
