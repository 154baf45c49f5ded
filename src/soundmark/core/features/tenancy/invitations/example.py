"""The example of an invitation."""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from soundmark.core.domain.tenancy.invitation import Invitation
from soundmark.core.edge.examples import ISSUED_AT, LATER, ORGANIZATION
from soundmark.core.features.tenancy.invitations.service import NewInvitation, NewMembership
from soundmark.kit.crypto.secret import Secret

INVITATION: Final = Invitation(
    id="inv_YWRhLWlzLWludml0ZWQtZX",
    organization_id=ORGANIZATION.id,
    email="ada@example.org",
    role="member",
    created_at=ISSUED_AT,
    expires_at=ISSUED_AT + timedelta(days=7),
    accepted_at=None,
    revoked_at=None,
    delivery_status="pending",
)
CREATED: Final = NewInvitation(INVITATION, Secret("xin_" + "ZXhhbXBsZS1vZi1hLXNlY3JldC10aGF0LWludml0ZXM"))
REVOKED: Final = replace(INVITATION, revoked_at=LATER, delivery_status="cancelled")
JOINED: Final = NewMembership(INVITATION.organization_id, INVITATION.role)
