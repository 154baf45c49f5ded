"""The arithmetic of draft invoices: what was paid is what the accounting system adds up to, for every rate."""

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soundmark.core.domain.billing.accounting import amount_of, is_amount, price_without_tax

AMOUNTS = st.integers(1, 2**53 - 1)  # Contract, section 7: what the catalogue can hold.
RATES = st.integers(0, 100_00).map(lambda hundredths: Decimal(hundredths) / 100)
UNITS = {"JPY": 0, "EUR": 2, "TND": 3}


def total_of(price: Decimal, rate: Decimal, decimals: int) -> Decimal:
    """Return the total of an invoice as the accounting system rounds it."""
    return (price * (100 + rate) / 100).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


@given(AMOUNTS, RATES, st.sampled_from(sorted(UNITS)))
def test_the_total_read_back_is_what_was_paid(amount_minor: int, rate: Decimal, currency: str) -> None:
    """At every rate of tax, where the system keeps as many decimals as the currency has, or more."""
    amount = amount_of(amount_minor, currency)
    price = price_without_tax(amount, rate)
    assert price == price.quantize(Decimal("0.00001"))
    for decimals in range(UNITS[currency], 6):
        assert is_amount(total_of(price, rate, decimals), amount)


@given(AMOUNTS, RATES)
def test_a_system_with_too_few_decimals_is_found_out(amount_minor: int, rate: Decimal) -> None:
    """Two decimals hold an amount in dinars only if it has no millimes left."""
    amount = amount_of(amount_minor, "TND")
    total = total_of(price_without_tax(amount, rate), rate, 2)
    assert is_amount(total, amount) == (amount_minor % 10 == 0)


@given(AMOUNTS, AMOUNTS, st.sampled_from(sorted(UNITS)))
def test_another_amount_is_never_taken_for_the_one_paid(paid: int, other: int, currency: str) -> None:
    assert is_amount(amount_of(other, currency), amount_of(paid, currency)) == (paid == other)


@pytest.mark.parametrize(
    ("amount_minor", "currency", "rate", "price"),
    [
        (10_555, "TND", "19", "8.86975"),
        (11_900, "TND", "19", "10.00000"),
        (1_234, "EUR", "0", "12.34000"),
        (1_000, "JPY", "10", "909.09091"),
        (1, "TND", "100", "0.00050"),
        (2_990, "EUR", "7.25", "27.87879"),
    ],
)
def test_the_price_is_without_tax_and_has_five_decimals(
    amount_minor: int, currency: str, rate: str, price: str
) -> None:
    assert str(price_without_tax(amount_of(amount_minor, currency), Decimal(rate))) == price


def test_an_amount_has_the_decimals_of_its_currency() -> None:
    """The card provider counts ISK and UGX in hundredths, although they have none."""
    three = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"]
    none = ["BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF"]
    for codes, amount in ((three, "12.345"), (none, "12345"), (["EUR", "USD", "CHF", "ISK", "UGX"], "123.45")):
        assert {code: str(amount_of(12_345, code)) for code in codes} == dict.fromkeys(codes, amount)


def test_a_total_is_compared_to_the_minor_unit() -> None:
    paid = amount_of(10_555, "TND")
    assert all(is_amount(Decimal(total), paid) for total in ("10.55500000", "10.5550025", "10.5545"))
    assert not any(is_amount(Decimal(total), paid) for total in ("10.56000000", "10.55449999", "-10.555", "0"))
