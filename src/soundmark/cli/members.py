"""`soundmark members`: the members of an organisation, and its invitations."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from soundmark_sdk.client.records import Invitation, Member, Role

from soundmark.cli.api import open_client, show_made, show_outcome, show_page
from soundmark.cli.options import AsJson, Connection, Organization, OrganizationCall, Paging, Quiet, command
from soundmark.cli.secret_output import SecretOutput, make_with_secret
from soundmark.cli.service import read_private_file

app = typer.Typer(add_completion=False, no_args_is_help=True)

SubjectId = Annotated[str, typer.Argument(metavar="SUBJECT", help="The member's subject id, as `list` shows it.")]
_HEADINGS = ("Subject", "E-mail", "Role", "Since")
_INVITATION_HEADINGS = ("Invitation", "E-mail", "Role", "Status", "Mail", "Expires")


@app.callback()
def members() -> None:
    """List, change and remove members, and invite people, over Core's API. An API key cannot do this."""


@command(app, "list")
def list_members(*, paging: Paging, call: OrganizationCall) -> None:
    """List the members of an organisation, newest first."""
    with open_client(call.connection, call.organization) as client:
        page = client.members.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


@command(app, "change-role")
def change_role(
    subject_id: SubjectId, role: Annotated[Role, typer.Argument(help="The new role.")], *, call: OrganizationCall
) -> None:
    """Change a member's role. Only an owner can make someone owner or admin, or change an owner's or admin's role."""
    with open_client(call.connection, call.organization) as client:
        member = client.members.change_role(subject_id, role)
    show_made(member, _HEADINGS, _row(member), as_json=call.as_json)


@command(app)
def remove(subject_id: SubjectId, *, organization: Organization = None, connection: Connection) -> None:
    """Remove a member. Members can remove themselves; the last owner cannot be removed."""
    with open_client(connection, organization) as client:
        client.members.remove(subject_id)
    typer.echo(f"{subject_id} is no longer a member")


@command(app)
def invite(
    email: Annotated[
        str, typer.Argument(metavar="EMAIL", help="The person's e-mail address; to accept, they must have verified it.")
    ],
    role: Annotated[Literal["member", "billing", "admin"], typer.Option(help="Their role.")] = "member",
    *,
    expires_in_days: Annotated[
        int | None, typer.Option(metavar="DAYS", min=1, help="Days until it expires. Default: 7.")
    ] = None,
    output: SecretOutput,
    quiet: Quiet = False,
    call: OrganizationCall,
) -> None:
    """Invite a person. The secret for accepting is shown only once and, if mail is configured, e-mailed to them."""
    make_with_secret(
        call,
        lambda client: client.invitations.create(email, role, expires_in_days=expires_in_days),
        _INVITATION_HEADINGS,
        _invitation_row,
        output=output,
        quiet=quiet,
    )


@command(app, "invitations")
def list_invitations(*, paging: Paging, call: OrganizationCall) -> None:
    """List an organisation's invitations, newest first, regardless of status."""
    with open_client(call.connection, call.organization) as client:
        page = client.invitations.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _INVITATION_HEADINGS, _invitation_row, as_json=call.as_json)


@command(app, "revoke-invitation")
def revoke_invitation(
    invitation_id: Annotated[str, typer.Argument(metavar="INVITATION", help="The invitation's id.")],
    *,
    call: OrganizationCall,
) -> None:
    """Revoke a pending invitation."""
    with open_client(call.connection, call.organization) as client:
        revoked = client.invitations.revoke(invitation_id)
    show_outcome(revoked, f"{revoked.id} is {revoked.status}", as_json=call.as_json)


@command(app, "accept-invitation")
def accept_invitation(
    token_file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file with the invitation's secret, which only you can access."),
    ],
    *,
    connection: Connection,
    as_json: AsJson = False,
) -> None:
    """Accept an invitation. Its secret is read from a file, never from the command line."""
    token = read_private_file(token_file)
    with open_client(connection) as client:
        joined = client.invitations.accept(token)
    show_outcome(
        joined, f"you are now a member of {joined.organization_id}, with the role {joined.role}", as_json=as_json
    )


def _row(member: Member) -> tuple[object, ...]:
    return (member.subject_id, member.email, member.role, member.created_at)


def _invitation_row(invitation: Invitation) -> tuple[object, ...]:
    return (
        invitation.id,
        invitation.email,
        invitation.role,
        invitation.status,
        invitation.delivery_status,
        invitation.expires_at,
    )
