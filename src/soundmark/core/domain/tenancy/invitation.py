"""Invitations and their delivery by mail."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

InvitedRole = Literal["admin", "member", "billing"]
InvitationState = Literal["pending", "accepted", "expired", "revoked"]
DeliveryStatus = Literal["pending", "processing", "sent", "cancelled", "dead", "unavailable"]

ATTEMPTS_MAX: Final = 5  # API v1, "Limits".
# An attempt ends well before the next may begin, so that there are never two at the same time.
SENDING_MAX: Final = timedelta(seconds=60)
LEASE: Final = timedelta(seconds=120)
# The pauses after the first attempt, the second, …: long enough for a server to restart, upgrade, or greylist.
_PAUSES: Final = tuple(timedelta(seconds=30 * 4**number) for number in range(ATTEMPTS_MAX - 1))


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation as stored. Its secret is stored only sealed, and only until it is delivered."""

    id: str
    organization_id: str
    email: str
    role: InvitedRole
    created_at: datetime
    expires_at: datetime
    accepted_at: datetime | None
    revoked_at: datetime | None
    delivery_status: DeliveryStatus

    def status(self, now: datetime) -> InvitationState:
        """Return the status at `now`: accepted or revoked, else expired or pending.

        Source: contract, section 3.
        """
        if self.accepted_at is not None:
            return "accepted"
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at <= now else "pending"


@dataclass(frozen=True, slots=True)
class Delivery:
    """The mail of one invitation: its contents and its progress.

    No attempt may begin before `due_at`, because another is in progress or has just failed. Both `due_at` and
    `sealed_secret` are None once the delivery is over.
    """

    invitation_id: str
    organization_id: str
    organization_name: str
    is_organization_closing: bool
    is_organization_suspended: bool
    email: str
    role: InvitedRole
    created_at: datetime
    expires_at: datetime
    status: DeliveryStatus
    attempts: int
    due_at: datetime | None
    sealed_secret: bytes | None

    def next_step(self, now: datetime) -> Literal["nothing", "cancel", "give_up", "wait", "hold", "send"]:
        """Return what to do about the delivery at `now`. Repeated calls give the same result.

        The mail of a suspended organisation is held: nobody could accept, and it may be why it was suspended.
        """
        if self.status not in {"pending", "processing"}:
            return "nothing"
        assert self.due_at is not None, "an open delivery has a due time"
        if self.expires_at <= now or self.is_organization_closing:
            return "cancel"
        if self.due_at > now:
            return "wait"
        if self.attempts >= ATTEMPTS_MAX:
            return "give_up"  # The last of five attempts never reported a result: its worker was killed.
        return "hold" if self.is_organization_suspended else "send"


def pause_after(attempts: int) -> timedelta:
    """Return how long to wait after this number of failed attempts."""
    assert 1 <= attempts < ATTEMPTS_MAX, "there is no attempt after the last one"
    return _PAUSES[attempts - 1]
