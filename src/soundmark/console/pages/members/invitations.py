"""The pages of invitations."""

from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.pages.members.routes import list_invitable
from soundmark.console.routing import action, form_page
from soundmark.console.visit import Visit

_ACCEPT: Final = "/invitations/accept"


async def show_list(visit: Visit) -> Response:
    """Show the invitations of an organisation."""
    invitations = await visit.core.invitations.page(cursor=visit.query("cursor"))
    return visit.page("members/invitations.html", invitations=invitations, roles=list_invitable(visit))


async def invite(visit: Visit) -> Response:
    """Invite a person, and show the link with the secret once.

    The secret is in the fragment, which browsers send to no server, so that it is in no log and no `Referer`.
    """
    role: Any = visit.form.text("role")  # Core refuses what is no role.
    invitation = await visit.core.invitations.create(
        visit.form.text("email"), role, expires_in_days=visit.form.integer("expires_in_days")
    )
    link = f"{visit.console.addresses.console}{_ACCEPT}#token={invitation.secret}"
    return visit.page("members/invited.html", invitation=invitation, link=link)


async def revoke(visit: Visit) -> Response:
    """Revoke a pending invitation."""
    invitation_id = visit.parameter("invitation_id")
    invitation = await visit.core.invitations.revoke(invitation_id)
    return visit.redirect(f"{visit.tenant_path}/members/invitations", "invitations.revoked", email=invitation.email)


async def show_acceptance(visit: Visit) -> Response:
    """Ask for the token of an invitation, which a script takes from the link."""
    return visit.page("members/accept.html")


async def accept(visit: Visit) -> Response:
    """Join an organisation, with the token of an invitation or its whole link."""
    joined = await visit.core.invitations.accept(visit.form.text("token").rpartition("#token=")[2])
    visit.console.directory.forget(visit.signed_in.subject)
    role = visit.say(f"roles.{joined.role}")
    return visit.redirect(f"/organizations/{joined.organization_id}", "invitations.accepted", role=role)


_ALL: Final = "/organizations/{organization_id}/members/invitations"
routes: Final[list[Route]] = [
    form_page(_ALL, show_list, invite),
    action(f"{_ALL}/{{invitation_id}}/revoke", revoke),
    # Shown to strangers too: a redirect to the sign-in page would carry the fragment to the identity provider.
    form_page(_ACCEPT, show_acceptance, accept, is_shown_to_all=True),
]
