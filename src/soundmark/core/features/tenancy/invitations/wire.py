"""The request and response shapes of invitations."""

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from soundmark.core.domain.tenancy.invitation import DeliveryStatus, Invitation, InvitationState, InvitedRole
from soundmark.core.domain.tenancy.mailbox import read_mailbox
from soundmark.core.features.tenancy.invitations.service import NewInvitation
from soundmark.wire.shape import Timestamp, Wire


def _address(text: str) -> str:
    mailbox = read_mailbox(text)
    if mailbox is None:
        raise ValueError("must be a deliverable e-mail address")
    return mailbox.address


# RFC 5321, section 4.5.3.1.3, less the angle brackets.
Address = Annotated[
    str,
    Field(max_length=254, description="A deliverable e-mail address.", json_schema_extra={"format": "idn-email"}),
    AfterValidator(_address),
]


class CreateInvitation(Wire):
    """An invitation of one person to an organisation. Nobody can be invited as an owner."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "organization_id": "org_b2xkLXJhZGlvLWV4YW1w",
                    "email": "ada@example.org",
                    "role": "member",
                    "expires_in_days": 7,
                }
            ]
        }
    )

    organization_id: str
    email: Address
    role: InvitedRole
    expires_in_days: Annotated[int, Field(ge=1, le=14)] = 7


class AcceptInvitation(Wire):
    """The secret of an invitation."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"token": "xin_c2VjcmV0LW9mLWFuLWludml0YXRpb24tZXhhbXBsZTE"}]}
    )

    token: Annotated[
        str,
        Field(
            description="The secret of a pending invitation to your own e-mail address (else 400 `invitation_invalid`)."
        ),
    ]


class InvitationView(Wire):
    """An invitation without its secret."""

    id: str
    organization_id: str
    email: str
    role: InvitedRole
    status: InvitationState
    delivery_status: DeliveryStatus
    created_at: Timestamp
    expires_at: Timestamp


class CreatedInvitationView(InvitationView):
    """A new invitation with its secret, which is returned only once."""

    secret: str


class InvitationPage(Wire):
    """Invitations, newest first."""

    data: list[InvitationView]
    next_cursor: str | None


class JoinedView(Wire):
    """The organisation that the caller joined, and their role in it."""

    organization_id: str
    role: InvitedRole


def invitation_view(invitation: Invitation, now: datetime) -> InvitationView:
    """Return the view of one invitation, with its status at `now`."""
    return InvitationView.from_record(invitation, status=invitation.status(now))


def created_view(invited: NewInvitation) -> CreatedInvitationView:
    """Return the view of a new invitation, with its secret."""
    shown = invitation_view(invited.invitation, invited.invitation.created_at)
    return CreatedInvitationView(**dict(shown), secret=invited.secret.reveal())
