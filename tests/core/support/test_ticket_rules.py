"""Rules of support tickets that need no desk: when an attempt may be made, and for how long."""

from datetime import UTC, datetime, timedelta
from typing import Final

from soundmark.core.domain.support.ticket import (
    ATTEMPT_MAX,
    LEASE,
    TICKET_PREFIX,
    CustomerMessage,
    Ticket,
    TicketMessage,
    belongs_to_ticket,
    names_ticket,
    next_attempt_at,
)

NOW: Final = datetime(2026, 11, 23, tzinfo=UTC)
TICKET: Final = Ticket(
    organization_id="org_1",
    id="tkt_1",
    subject_id="ada",
    request_id="request-1",
    subject="No sound",
    status="pending",
    sealed_message=b"MARKsealed",
    conversation_id=None,
    mailbox_id=None,
    desk_updated_at=None,
    attempts=0,
    post_after=NOW,
    created_at=NOW,
)


def test_ids_and_the_longest_attempt_are_those_of_the_contract() -> None:
    assert ("tkt_", timedelta(seconds=10)) == (TICKET_PREFIX, ATTEMPT_MAX)
    assert ATTEMPT_MAX < LEASE


def test_the_job_tries_until_the_ticket_is_three_days_old() -> None:
    last = NOW + timedelta(days=3)
    assert next_attempt_at(NOW, last - timedelta(hours=1)) == last
    assert next_attempt_at(NOW, last - timedelta(hours=1, microseconds=-1)) is None


def test_nobody_posts_during_the_attempt_of_another() -> None:
    assert TICKET.may_post_at(NOW)
    assert not TICKET.may_post_at(NOW - timedelta(microseconds=1))
    assert not TICKET.may_post_at(NOW - LEASE), "it has just begun"
    assert TICKET.may_post_at(NOW - LEASE - timedelta(microseconds=1)), "the clock was set back"


def test_what_a_customer_wrote_is_in_no_traceback() -> None:
    message = CustomerMessage("MARK@example.org", "MARK my words")
    assert "MARK" not in repr((TICKET, message, TicketMessage("customer", "MARK my words", NOW)))


def test_a_conversation_belongs_to_the_ticket_that_its_subject_names_last() -> None:
    """Core appends the reference; a customer may have written the reference of another ticket before it."""
    subject = "Like [tkt_other] [tkt_mine]"
    assert [names_ticket(subject, ticket) for ticket in ("tkt_other", "tkt_mine")] == [True, True]
    assert [belongs_to_ticket(subject, ticket) for ticket in ("tkt_other", "tkt_mine")] == [False, True]
    assert not belongs_to_ticket("No sound", "tkt_mine")
