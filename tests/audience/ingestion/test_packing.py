"""The numbers that rows of events hold in place of words."""

from typing import get_args

import pytest

from soundmark.audience.domain.packing import RECEIVER_CLASSES, RECEIVER_NUMBERS, country_code, country_number
from soundmark.wire.audience_event import ReceiverClass


def test_a_receiver_class_keeps_its_number() -> None:
    """Stored events would otherwise change their class with a release."""
    assert RECEIVER_NUMBERS == {
        "phone": 0,
        "tablet": 1,
        "computer": 2,
        "television": 3,
        "speaker": 4,
        "wearable": 5,
        "vehicle": 6,
        "kiosk": 7,
        "other": 8,
    }


def test_every_receiver_class_of_the_contract_has_a_number() -> None:
    assert set(RECEIVER_CLASSES) == set(get_args(ReceiverClass))


def test_a_country_keeps_its_number(subtests: pytest.Subtests) -> None:
    for code, number in [("AA", 0), ("AZ", 25), ("BA", 26), ("DE", 82), ("ZZ", 675)]:
        with subtests.test(code=code, number=number):
            assert country_number(code) == number
            assert country_code(number) == code
