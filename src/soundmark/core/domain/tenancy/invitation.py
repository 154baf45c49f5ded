"""Invitations, and the mail that brings them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

InvitedRole = Literal["admin", "member", "billing"]
InvitationState = Literal["pending", "accepted", "expired", "revoked"]
DeliveryStatus = Literal["pending", "processing", "sent", "cancelled", "dead", "unavailable"]

ATTEMPTS_MAX: Final = 5  # API v1, "Limits".
# An attempt is given up well before another may begin, so that there are never two at once.
SENDING_MAX: Final = timedelta(seconds=60)
LEASE: Final = timedelta(seconds=120)
# After the first attempt, the second, …: a server that is restarted, upgraded, or greylists.
_PAUSES: Final = tuple(timedelta(seconds=30 * 4**number) for number in range(ATTEMPTS_MAX - 1))


@dataclass(frozen=True, slots=True)
class Invitation:
    """An invitation as it is stored; its secret is nowhere but sealed, and only while it is being delivered."""

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
        """Contract, section 3: what ended it, else expired from its time on."""
        if self.accepted_at is not None:
            return "accepted"
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at <= now else "pending"


@dataclass(frozen=True, slots=True)
class Delivery:
    """What the mail of one invitation is about and how far it is.

    `due_at` is the moment before which no attempt may begin, because one is under way or failed just before; like
    `sealed_secret`, it is None once the delivery is over.
    """

    invitation_id: str
    organization_id: str
    organization_name: str
    is_organization_closing: bool
    email: str
    role: InvitedRole
    created_at: datetime
    expires_at: datetime
    status: DeliveryStatus
    attempts: int
    due_at: datetime | None
    sealed_secret: bytes | None

    def next_step(self, now: datetime) -> Literal["nothing", "cancel", "give_up", "wait", "send"]:
        """What is to be done about it now, whoever asks and however often."""
        if self.status not in {"pending", "processing"}:
            return "nothing"
        assert self.due_at is not None, "an open delivery is due some time"
        if self.expires_at <= now or self.is_organization_closing:
            return "cancel"
        if self.due_at > now:
            return "wait"
        # Five attempts and none came back to say how it ended: their workers were killed.
        return "give_up" if self.attempts >= ATTEMPTS_MAX else "send"


def pause_after(attempts: int) -> timedelta:
    """How long to wait after so many attempts failed."""
    assert 1 <= attempts < ATTEMPTS_MAX, "there is no attempt after the last one"
    return _PAUSES[attempts - 1]
