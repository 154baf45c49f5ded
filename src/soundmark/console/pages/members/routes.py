"""The pages of members."""

import asyncio
from typing import Final, cast, get_args

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import Invitation, Role
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.parts import read_part
from soundmark.console.routing import action, form_page, page
from soundmark.console.troubles import TenantUnknown, describe
from soundmark.console.visit import Visit

_ROLES: Final = get_args(Role)
# Only an owner can grant, change or withdraw them. Source: contract, section 2.
_OWNERS_BUSINESS: Final = frozenset({"owner", "admin"})
# Owners are appointed, never invited.
_INVITABLE: Final = ("member", "billing", "admin")
_PENDING_MAX: Final = 10


def list_appointable(visit: Visit) -> list[Role]:
    """Return the roles that the person may give to others and take from them."""
    is_owner = visit.organization is not None and visit.organization.role == "owner"
    return [role for role in _ROLES if is_owner or role not in _OWNERS_BUSINESS]


def list_invitable(visit: Visit) -> list[str]:
    """Return the roles that the person may invite others to; what was chosen stays, though Core refused it."""
    offered = {*list_appointable(visit), visit.form.text("role")}
    return [role for role in _INVITABLE if role in offered]


async def show_list(visit: Visit) -> Response:
    """Show the members and the open invitations of an organisation; a person who may see neither may still leave."""
    try:
        members, pending = await asyncio.gather(
            visit.core.members.page(cursor=visit.query("cursor")), read_part(_list_pending(visit))
        )
    except ApiProblem as refused:
        if refused.code != "forbidden":
            raise
        visit.trouble = describe(refused, visit.language)
        return visit.page("members/own.html")
    return visit.page(
        "members/list.html",
        members=members,
        pending=pending,
        roles=_ROLES,
        appointable=list_appointable(visit),
        invitable=list_invitable(visit),
    )


async def change_role(visit: Visit) -> Response:
    """Give a member another role."""
    role = cast("Role", visit.form.text("role"))  # Core refuses what is no role.
    member = await visit.core.members.change_role(visit.form.segment("subject_id"), role)
    if member.subject_id == visit.signed_in.subject:
        visit.console.directory.forget(visit.signed_in.subject)
    return visit.redirect(f"{visit.tenant_path}/members", "members.role_changed", email=member.email)


async def show_removal(visit: Visit) -> Response:
    """Ask for confirmation before a member is removed, or leaves.

    Raises: TenantUnknown without a member, or for a form that was sent while Core could not name the organisation.
        soundmark_sdk.ClientFailure.
    """
    subject_id = visit.form.raw("subject_id") or visit.request.query_params.get("subject_id", "")
    if not subject_id or visit.organization is None:
        raise TenantUnknown
    is_oneself = subject_id == visit.signed_in.subject
    email = visit.signed_in.email if is_oneself else await _find_email(visit, subject_id)
    return visit.page("members/remove.html", subject_id=subject_id, email=email, is_oneself=is_oneself)


async def remove(visit: Visit) -> Response:
    """Remove a member. People who left see the organisations that they still belong to."""
    subject_id = visit.form.segment("subject_id")
    await visit.core.members.remove(subject_id)
    if subject_id != visit.signed_in.subject:
        return visit.redirect(f"{visit.tenant_path}/members", "members.removed")
    visit.console.directory.forget(visit.signed_in.subject)
    return visit.redirect("/organizations", "members.left", name=visit.organization.name if visit.organization else "")


async def _list_pending(visit: Visit) -> list[Invitation]:
    """Return the newest open invitations; the page of the invitations has the others."""
    invitations = await visit.core.invitations.page()
    return [each for each in invitations.data if each.status == "pending"][:_PENDING_MAX]


async def _find_email(visit: Visit, subject_id: str) -> str | None:
    async for member in visit.core.members.list():
        if member.subject_id == subject_id:
            return member.email
    return None


_ALL: Final = "/organizations/{organization_id}/members"
# A subject id is whatever the identity provider says, so it stands in no path.
routes: Final[list[Route]] = [
    page(_ALL, show_list),
    action(f"{_ALL}/role", change_role),
    form_page(f"{_ALL}/remove", show_removal, remove),
]
