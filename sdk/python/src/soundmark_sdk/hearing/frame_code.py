"""How a frame is sent: its bytes, their check bytes, and the tones of each group."""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]

PREFIX: Final = b"XRC1:brd_"
TOKEN_BYTES: Final = 16
CHECK_BYTES: Final = 10
UNKNOWN_BYTES: Final = TOKEN_BYTES + CHECK_BYTES
LETTERS: Final = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8)
# A group of six tones carries three bytes, the low half of each first: 38 bytes, and one that is 0.
GROUPS: Final = 13
NIBBLES: Final = 6  # In a group; each has a band of its own.
TONES: Final = 16  # In a band.
KNOWN_GROUPS: Final = 4
FIRST_TONE_HZ: Final = 15_000.0
TONE_STEP_HZ: Final = 46.875
# The blocks of 1,024 samples (at 48 kHz) of one group, by protocol, and of a marker.
GROUP_BLOCKS: Final = {3: 9, 4: 6, 5: 3}
MARKER_BLOCKS: Final = 16
MARKER_PAIRS: Final = 16

_POLYNOMIAL: Final = 0x11D  # Of GF(256); the code's roots are 2^0 to 2^9, and for the length 2^0 and 2^1.


def _make_powers() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    powers, logarithms = np.zeros(510, np.intp), np.zeros(256, np.intp)
    value = 1
    for exponent in range(255):
        powers[exponent] = powers[exponent + 255] = value
        logarithms[value] = exponent
        value <<= 1
        value ^= _POLYNOMIAL * (value >> 8)
    return powers, logarithms


_POWERS, _LOGARITHMS = _make_powers()
# As plain numbers: 2^exponent, up to the sum of two logarithms, and the exponent of each value but 0.
EXPONENTIALS: Final[list[int]] = _POWERS.tolist()
LOGARITHMS: Final[list[int]] = _LOGARITHMS.tolist()
PRODUCTS: Final[Bytes] = np.zeros((256, 256), np.uint8)
PRODUCTS[1:, 1:] = _POWERS[_LOGARITHMS[1:, None] + _LOGARITHMS[None, 1:]]
_INVERSES: Final[Bytes] = np.zeros(256, np.uint8)
_INVERSES[1:] = _POWERS[255 - _LOGARITHMS[1:]]


def multiply(left: Bytes, right: Bytes) -> Bytes:
    """Return the product of two matrices over GF(256)."""
    product = np.zeros((left.shape[0], right.shape[1]), np.uint8)
    for column in range(left.shape[1]):
        product ^= PRODUCTS[left[:, column][:, None], right[column][None, :]]
    return product


def invert(matrix: Bytes) -> Bytes:
    """Return the inverse of a square matrix over GF(256), which has one."""
    size = len(matrix)
    work = np.concatenate([matrix, np.eye(size, dtype=np.uint8)], axis=1)
    for column in range(size):
        pivot = column + int(np.flatnonzero(work[column:, column])[0])
        work[[column, pivot]] = work[[pivot, column]]
        work[column] = PRODUCTS[_INVERSES[work[column, column]], work[column]]
        factors = work[:, column].copy()
        factors[column] = 0
        work ^= PRODUCTS[factors[:, None], work[column][None, :]]
    return work[:, size:]


def find_check_bytes(data: bytes, count: int) -> Bytes:
    """Return the check bytes of `data`."""
    generator = np.ones(1, np.uint8)
    for root in range(count):
        times_root = PRODUCTS[_POWERS[root], generator]
        generator = np.append(generator, np.uint8(0)) ^ np.append(np.uint8(0), times_root)
    rest = np.zeros(count, np.uint8)
    for byte in data:
        factor = byte ^ rest[0]
        rest = np.append(rest[1:], np.uint8(0)) ^ PRODUCTS[factor, generator[1:]]
    return rest


def find_nibbles(text: bytes) -> NDArray[np.intp]:
    """Return the half byte that each tone of a frame carries, of shape (groups, nibbles)."""
    length = bytes([len(text)])
    coded = b"".join(
        (length, find_check_bytes(length, 2).tobytes(), text, find_check_bytes(text, CHECK_BYTES).tobytes(), b"\0")
    )
    values = np.frombuffer(coded, np.uint8)
    return np.stack([values & 15, values >> 4], axis=1).reshape(GROUPS, NIBBLES).astype(np.intp)


def _make_generator() -> tuple[Bytes, Bytes]:
    """Return the unknown bytes of a frame whose token is zeros, and what each byte of the token adds to them."""
    zeros = bytes(TOKEN_BYTES)
    base = np.append(np.zeros(TOKEN_BYTES, np.uint8), find_check_bytes(PREFIX + zeros, CHECK_BYTES))
    rows = []
    for place in range(TOKEN_BYTES):
        unit = bytes(len(PREFIX)) + zeros[:place] + b"\1" + zeros[place + 1 :]
        rows.append(np.append(np.eye(TOKEN_BYTES, dtype=np.uint8)[place], find_check_bytes(unit, CHECK_BYTES)))
    return base, np.stack(rows)


CODE_BASE, CODE_ROWS = _make_generator()
# What every frame begins with, of shape (4, 6), and the place of each unknown byte's first nibble in the frame.
KNOWN_NIBBLES: Final = find_nibbles(PREFIX + bytes(TOKEN_BYTES))[:KNOWN_GROUPS]
FIRST_UNKNOWN_NIBBLE: Final = KNOWN_GROUPS * NIBBLES
