"""Receipts of idempotent requests: how long they are kept, and which request they belong to."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from soundmark.core.domain.codes.receipt import Receipt, make_keyed_request

NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
KEY: Final = "0123456789abcdef"


def make_receipt(**changes: Any) -> Receipt:
    keyed = make_keyed_request(KEY, "single", {"intent": {}})
    assert keyed.request_digest is not None
    receipt = Receipt(keyed.key_digest, "prj_1", "single", keyed.request_digest, b"{}", NOW)
    return replace(receipt, **changes)


def test_a_receipt_is_kept_for_24_hours() -> None:
    end = NOW + timedelta(hours=24)
    assert make_receipt().is_kept(end - timedelta(microseconds=1))
    assert not make_receipt().is_kept(end)


def test_a_receipt_belongs_to_the_same_request_by_the_same_route() -> None:
    assert make_receipt().belongs_to(make_keyed_request(KEY, "single", {"intent": {}}))
    assert not make_receipt().belongs_to(make_keyed_request(KEY, "batch", {"intent": {}}))
    assert not make_receipt().belongs_to(make_keyed_request(KEY, "single", {"intent": {"a": 1}}))
    assert make_keyed_request(KEY, "single", float("nan")).request_digest is None, "it can never have been accepted"


@pytest.mark.parametrize(
    ("key", "is_well_formed"),
    [
        *((KEY, True), ("~" * 128, True), ("A0._~-" * 3, True)),
        *((KEY[1:], False), ("~" * 129, False), (KEY + "\n", False), (KEY + "ü", False), (KEY + " ", False)),
    ],
    ids=repr,
)
def test_a_key_has_16_to_128_unreserved_characters(key: str, *, is_well_formed: bool) -> None:
    assert make_keyed_request(key, "single", {}).is_key_well_formed is is_well_formed
