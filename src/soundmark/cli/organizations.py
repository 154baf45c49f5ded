"""`soundmark organizations`: the tenants that a person belongs to."""

from itertools import islice
from typing import Annotated, Final

import typer
from soundmark_sdk.client.records import Organization as OrganizationRecord

from soundmark.cli.api import open_client, show_made, show_page
from soundmark.cli.defaults import TenantChoice, save_choice
from soundmark.cli.leaving import DeletionOptions, Out, delete_subject, find_organization, save_archive, show_preflight
from soundmark.cli.options import AsJson, Connection, Organization, OrganizationCall, Paging, Quiet, command
from soundmark.cli.secret_output import Force
from soundmark.cli.service import find_service

app = typer.Typer(add_completion=False, no_args_is_help=True)

_SEARCHED_MAX: Final = 1000  # Namesakes are looked for among so many, the newest.
_HEADINGS = ("Organisation", "Name", "Your role", "Created", "Deletion requested", "Suspended")


@app.callback()
def organizations() -> None:
    """Create, list, rename, export and delete organisations, over Core's API. An API key cannot do this."""


@command(app)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 120 characters.")],
    *,
    use: Annotated[bool, typer.Option("--use", help="Make it the default, as `soundmark use` does.")] = False,
    quiet: Quiet = False,
    connection: Connection,
    as_json: AsJson = False,
) -> None:
    """Create an organisation, with you as its owner."""
    with open_client(connection) as client:
        namesakes = [each.id for each in islice(client.organizations.list(), _SEARCHED_MAX) if each.name == name]
        made = client.organizations.create(name)
    if namesakes:
        typer.echo(f"another organisation has this name: {namesakes[0]}", err=True)
    if use:
        save_choice(find_service(connection).base_url, TenantChoice(made.id))
    show_made(made, _HEADINGS, _row(made), as_json=as_json, quiet=quiet)


@command(app, "list")
def list_organizations(*, paging: Paging, connection: Connection, as_json: AsJson = False) -> None:
    """List the organisations that you belong to, newest first."""
    with open_client(connection) as client:
        page = client.organizations.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=as_json)


@command(app)
def rename(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")], *, call: OrganizationCall
) -> None:
    """Rename an organisation."""
    with open_client(call.connection, call.organization) as client:
        renamed = client.organizations.rename(name)
    show_made(renamed, _HEADINGS, _row(renamed), as_json=call.as_json)


@command(app)
def export(*, organization: Organization = None, out: Out = None, force: Force = False, connection: Connection) -> None:
    """Export an organisation to one signed file, which `soundmark archive verify` verifies."""
    with open_client(connection, organization) as client:
        save_archive(find_organization(client), out, force=force)


@command(app)
def preflight(*, call: OrganizationCall) -> None:
    """Preview the deletion of an organisation: what it would delete, and what blocks it. Changes nothing."""
    with open_client(call.connection, call.organization) as client:
        show_preflight(find_organization(client), as_json=call.as_json)


@command(app)
def delete(*, deletion: DeletionOptions, call: OrganizationCall) -> None:
    """Permanently delete an organisation and everything in it, and show where the deletion certificate is.

    The command shows what it would delete and asks for the full id. If it is interrupted, run it again: it resumes the
    deletion. --json prints the certificate.
    """
    with open_client(call.connection, call.organization) as client:
        address = find_service(call.connection).base_url
        delete_subject(client, find_organization(client), deletion, base_url=address, as_json=call.as_json)


def _row(organization: OrganizationRecord) -> tuple[object, ...]:
    return (
        organization.id,
        organization.name,
        organization.role,
        organization.created_at,
        organization.deletion_requested_at,
        organization.suspended_at,
    )
