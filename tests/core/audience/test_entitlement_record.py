"""How long an entitlement to measure holds."""

from datetime import UTC, datetime, timedelta

import pytest

from soundmark.core.domain.audience.integration import Entitlement

NOW = datetime(2026, 11, 20, tzinfo=UTC)
SOON = NOW + timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("ends_at", "holds", "ended_at"),
    [
        (None, True, NOW),
        (SOON, True, NOW),
        (NOW, False, NOW),
        (NOW - timedelta(days=1), False, NOW - timedelta(days=1)),
    ],
    ids=["for ever", "until soon", "until now", "until yesterday"],
)
def test_an_entitlement_holds_before_its_end_and_ends_once(
    ends_at: datetime | None, ended_at: datetime, *, holds: bool
) -> None:
    """One that has ended keeps its end: it is later than the truth otherwise, and Audience would count events again."""
    entitlement = Entitlement("contract", 5000, ends_at, 1)
    assert entitlement.holds(NOW) == holds
    assert entitlement.ended(NOW) == Entitlement("contract", 5000, ended_at, 1)
