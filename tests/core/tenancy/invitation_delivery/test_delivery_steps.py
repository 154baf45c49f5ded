"""What to do about the mail of an invitation, and when; and the status of the invitation."""

import datetime as dt

import pytest

from soundmark.core.domain.tenancy.invitation import (
    ATTEMPTS_MAX,
    Delivery,
    DeliveryStatus,
    Invitation,
    InvitationState,
    pause_after,
)

NOW = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
TICK = dt.timedelta(microseconds=1)


def make_delivery(
    status: DeliveryStatus = "pending",
    *,
    due_at: dt.datetime | None = NOW,
    expires_at: dt.datetime = NOW + TICK,
    attempts: int = 1,
    is_organization_closing: bool = False,
    is_organization_suspended: bool = False,
) -> Delivery:
    return Delivery(
        invitation_id="inv_example",
        organization_id="org_example",
        organization_name="Example",
        is_organization_closing=is_organization_closing,
        is_organization_suspended=is_organization_suspended,
        email="ada@example.org",
        role="member",
        created_at=NOW,
        expires_at=expires_at,
        status=status,
        attempts=attempts,
        due_at=due_at,
        sealed_secret=b"sealed",
    )


@pytest.mark.parametrize("status", ["pending", "processing"])
def test_an_open_delivery_is_sent_when_it_is_due(status: DeliveryStatus) -> None:
    assert make_delivery(status).next_step(NOW) == "send"
    assert make_delivery(status, due_at=NOW + TICK).next_step(NOW) == "wait"


@pytest.mark.parametrize("due_at", [NOW, NOW + TICK])
def test_a_delivery_that_nobody_could_accept_is_cancelled(due_at: dt.datetime) -> None:
    """Even before it is due, and after the last attempt: the sealed secret must not stay."""
    for attempts in (0, ATTEMPTS_MAX):
        assert make_delivery(due_at=due_at, expires_at=NOW, attempts=attempts).next_step(NOW) == "cancel"
        assert make_delivery(due_at=due_at, attempts=attempts, is_organization_closing=True).next_step(NOW) == "cancel"


def test_a_delivery_of_a_suspended_organisation_is_held_until_it_expires() -> None:
    assert make_delivery(is_organization_suspended=True).next_step(NOW) == "hold"
    assert make_delivery(is_organization_suspended=True, expires_at=NOW).next_step(NOW) == "cancel"


def test_an_attempt_that_was_lost_is_followed_by_another_until_five_were_made() -> None:
    assert make_delivery("processing", attempts=4).next_step(NOW) == "send"
    assert make_delivery("processing", attempts=5).next_step(NOW) == "give_up"
    assert make_delivery("processing", attempts=5, due_at=NOW + TICK).next_step(NOW) == "wait"


@pytest.mark.parametrize("status", ["sent", "cancelled", "dead", "unavailable"])
def test_nothing_is_done_about_a_delivery_that_is_over(status: DeliveryStatus) -> None:
    assert make_delivery(status, due_at=None, expires_at=NOW).next_step(NOW) == "nothing"


def test_there_are_four_pauses() -> None:
    assert [pause_after(attempts).total_seconds() for attempts in range(1, 5)] == [30, 120, 480, 1920]
    for attempts in (0, 5):
        with pytest.raises(AssertionError, match="there is no attempt after the last one"):
            pause_after(attempts)


@pytest.mark.parametrize(
    ("accepted_at", "revoked_at", "expires_at", "status"),
    [
        (None, None, NOW + TICK, "pending"),
        (None, None, NOW, "expired"),
        (None, NOW, NOW + TICK, "revoked"),
        (None, NOW, NOW, "revoked"),
        (NOW, None, NOW, "accepted"),
    ],
)
def test_an_invitation_is_pending_until_it_is_accepted_revoked_or_expired(
    accepted_at: dt.datetime | None, revoked_at: dt.datetime | None, expires_at: dt.datetime, status: InvitationState
) -> None:
    invitation = Invitation(
        id="inv_example",
        organization_id="org_example",
        email="ada@example.org",
        role="member",
        created_at=NOW,
        expires_at=expires_at,
        accepted_at=accepted_at,
        revoked_at=revoked_at,
        delivery_status="pending",
    )
    assert invitation.status(NOW) == status
