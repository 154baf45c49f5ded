"""The numbers that stand for words in a row of `events`; they never change their meaning."""

from typing import Final

# A class's place here is its number in the database: append only.
RECEIVER_CLASSES: Final = (
    "phone",
    "tablet",
    "computer",
    "television",
    "speaker",
    "wearable",
    "vehicle",
    "kiosk",
    "other",
)
RECEIVER_NUMBERS: Final = {receiver_class: number for number, receiver_class in enumerate(RECEIVER_CLASSES)}

_LETTERS: Final = 26
_FIRST: Final = ord("A")


def country_number(code: str) -> int:
    """Return the number of an ISO 3166-1 alpha-2 code; it depends on the two letters A to Z alone."""
    first, second = (ord(letter) - _FIRST for letter in code)
    assert 0 <= first < _LETTERS, "a country code is two letters A to Z"
    assert 0 <= second < _LETTERS, "a country code is two letters A to Z"
    return first * _LETTERS + second


def country_code(number: int) -> str:
    """Return the two letters whose `country_number` is `number`."""
    assert 0 <= number < _LETTERS**2, "no country has this number"
    first, second = divmod(number, _LETTERS)
    return chr(_FIRST + first) + chr(_FIRST + second)
