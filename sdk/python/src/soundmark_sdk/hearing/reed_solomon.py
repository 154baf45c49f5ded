"""Reed–Solomon decoding of hard bytes, some of which are erased."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from soundmark_sdk.hearing.frame_code import EXPONENTIALS, LOGARITHMS, PRODUCTS

_ORDER: Final = 255
# 2^(exponent * power), of shape (exponents, powers).
_POWERS: Final = np.array(EXPONENTIALS, np.uint8)[np.outer(np.arange(_ORDER + 1), np.arange(_ORDER)) % _ORDER]

# A polynomial is a list of coefficients, the lowest first.
Polynomial = list[int]


def correct(received: bytes, check_count: int, erased: Sequence[int] = ()) -> bytes | None:
    """Return the codeword near `received`: the data, then `check_count` check bytes. None if there are too many errors.

    `erased` are places whose bytes are not believed.
    """
    syndromes = _evaluate(received[::-1], range(check_count))
    if not any(syndromes):
        return received
    erasures = [1]
    for place in erased:
        erasures = _multiply(erasures, [1, EXPONENTIALS[len(received) - 1 - place]])
    locator = _locate_errors(syndromes, erasures, len(erased))
    if locator is None:
        return None
    values = _evaluate(locator, range(_ORDER, _ORDER - len(received), -1))
    exponents = [exponent for exponent, value in enumerate(values) if value == 0]
    if len(exponents) != len(locator) - 1:
        return None
    evaluator = _multiply(syndromes, locator)[:check_count]
    # The derivative of a polynomial over GF(2^n) has only its odd terms.
    derivative = [coefficient if power % 2 else 0 for power, coefficient in enumerate(locator)][1:]
    corrected = bytearray(received)
    inverses = [_ORDER - exponent for exponent in exponents]
    for exponent, above, below in zip(
        exponents, _evaluate(evaluator, inverses), _evaluate(derivative, inverses), strict=True
    ):
        magnitude = _divide(above, below)
        corrected[-1 - exponent] ^= _product(EXPONENTIALS[exponent], magnitude)
    return bytes(corrected)


def _locate_errors(syndromes: Sequence[int], erasures: Polynomial, erasure_count: int) -> Polynomial | None:
    """Return the polynomial whose roots are the inverse places of the errors: Berlekamp and Massey, after erasures."""
    locator = previous = erasures
    error_count = 0
    for step in range(erasure_count, len(syndromes)):
        previous = [0, *previous]
        discrepancy = 0
        for power, coefficient in enumerate(locator[: step + 1]):
            discrepancy ^= _product(coefficient, syndromes[step - power])
        if discrepancy == 0:
            continue
        following = [0] * max(len(locator), len(previous))
        for power, coefficient in enumerate(locator):
            following[power] = coefficient
        for power, coefficient in enumerate(previous):
            following[power] ^= _product(discrepancy, coefficient)
        if 2 * error_count <= step - erasure_count:
            previous = [_divide(coefficient, discrepancy) for coefficient in locator]
            error_count = step + 1 - erasure_count - error_count
        locator = following
    while len(locator) > 1 and locator[-1] == 0:
        locator = locator[:-1]
    return None if 2 * error_count + erasure_count > len(syndromes) else locator


def _product(left: int, right: int) -> int:
    return EXPONENTIALS[LOGARITHMS[left] + LOGARITHMS[right]] if left and right else 0


def _divide(left: int, right: int) -> int:
    return EXPONENTIALS[LOGARITHMS[left] + _ORDER - LOGARITHMS[right]] if left else 0


def _multiply(left: Sequence[int], right: Sequence[int]) -> Polynomial:
    product = [0] * (len(left) + len(right) - 1)
    for place, each in enumerate(left):
        for other_place, other in enumerate(right):
            product[place + other_place] ^= _product(each, other)
    return product


def _evaluate(polynomial: Sequence[int] | bytes, exponents: Iterable[int]) -> list[int]:
    """Return the values at 2^exponent, of a polynomial of up to 255 coefficients."""
    powers = _POWERS[list(exponents), : len(polynomial)]
    values: list[int] = np.bitwise_xor.reduce(PRODUCTS[list(polynomial), powers], axis=1).tolist()
    return values
