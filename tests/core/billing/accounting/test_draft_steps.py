"""What to do about a draft invoice, and when."""

import datetime as dt

import pytest

from soundmark.core.domain.billing.accounting import (
    ATTEMPT_MAX,
    DRAFT_PREFIX,
    LEASE,
    NOT_SCHEDULED,
    TRIED_FOR,
    DraftInvoice,
    DraftStatus,
    describe_period,
    pause_after,
)

NOW = dt.datetime(2026, 11, 20, 10, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def make_draft(status: DraftStatus, due_at: dt.datetime | None, give_up_at: dt.datetime) -> DraftInvoice:
    return DraftInvoice(
        organization_id="org_example",
        id="acc_example",
        subscription_id="bsu_example",
        checkout_id="bco_example",
        description="Codes Studio",
        amount_minor=10_555,
        currency="TND",
        period_start=NOW,
        period_end=NOW,
        status=status,
        attempts=1,
        due_at=due_at,
        give_up_at=give_up_at,
        created_at=NOW,
        posted_invoice_id=None,
    )


@pytest.mark.parametrize(
    ("status", "due_at", "step", "late_step"),
    [
        ("completed", None, "nothing", "nothing"),
        ("failed", None, "nothing", "nothing"),
        ("pending", NOW + SECOND, "wait", "wait"),
        ("pending", NOW, "attempt", "attempt"),
        ("processing", NOW + SECOND, "wait", "wait"),
        ("processing", NOW, "attempt", "give_up"),
    ],
)
def test_what_to_do_about_a_draft(status: DraftStatus, due_at: dt.datetime | None, step: str, late_step: str) -> None:
    """A draft that waited for a worker until after its last day is tried all the same; a lost attempt is not."""
    assert make_draft(status, due_at, NOW + SECOND).next_step(NOW) == step
    assert make_draft(status, due_at, NOW).next_step(NOW) == late_step


def test_pauses_double_from_half_a_minute_to_an_hour() -> None:
    assert [pause_after(attempts).total_seconds() for attempts in range(1, 11)] == [
        *(30, 60, 120, 240, 480, 960, 1920),
        *(3600, 3600, 3600),
    ]
    assert pause_after(10_000) == dt.timedelta(hours=1)
    with pytest.raises(AssertionError, match="a pause follows an attempt"):
        pause_after(0)


def test_an_attempt_ends_before_another_may_begin() -> None:
    """Between the two lies what the clocks of two machines may differ by."""
    assert dt.timedelta(seconds=15) <= LEASE - ATTEMPT_MAX
    assert dt.timedelta(days=1) == TRIED_FOR


def test_the_reference_is_that_of_the_specification() -> None:
    assert make_draft("pending", NOW, NOW).reference == "svc:acc_example"


def test_the_words_of_the_contract() -> None:
    assert (NOT_SCHEDULED.status, NOT_SCHEDULED.invoice_id) == ("not_scheduled", None)
    assert DRAFT_PREFIX == "acc_"  # The log and the accounting system show it.


def test_a_line_names_the_plan_and_the_period() -> None:
    end = dt.datetime(2026, 12, 20, tzinfo=dt.UTC)
    assert describe_period("Codes Studio", NOW, end) == "Codes Studio, 2026-11-20 to 2026-12-20"
