"""Rules of tickets and replies that need no desk: when an attempt may be made, and how each is found again."""

from datetime import UTC, datetime, timedelta
from typing import Final

from soundmark.core.domain.support.reply import REPLY_PREFIX, TicketReply, add_reference, split_reference
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


REPLY: Final = TicketReply(
    organization_id="org_1",
    id="rpl_" + "A" * 22,
    ticket_id="tkt_1",
    subject_id="ada",
    request_id="request-1",
    sealed_message=b"MARKsealed",
    thread_id=None,
    attempts=0,
    post_after=NOW,
    created_at=NOW,
)


def test_a_reply_takes_turns_like_a_ticket_and_keeps_its_message_to_itself() -> None:
    assert REPLY.may_post_at(NOW)
    assert not REPLY.may_post_at(NOW - LEASE)
    assert REPLY.may_post_at(NOW - LEASE - timedelta(microseconds=1)), "the clock was set back"
    assert REPLY.id.startswith(REPLY_PREFIX)
    assert "MARK" not in repr(REPLY)


def test_the_last_reference_of_a_message_is_its_own() -> None:
    """A customer may have written the reference of another reply before it."""
    other = "[rpl_" + "B" * 22 + "]"
    for text in ("It is on.", "", other, f"It is on.\n\n{other}", "[rpl_short]"):
        assert split_reference(add_reference(text, REPLY.id)) == (text, REPLY.id)


def test_a_message_without_a_reference_at_its_end_is_left_as_it_is() -> None:
    reference = f"[{REPLY.id}]"
    for text in ("", "It is on.\n", f"{reference} it says", reference[1:], reference.upper(), f"{reference}\n"):
        assert split_reference(text) == (text, None)
