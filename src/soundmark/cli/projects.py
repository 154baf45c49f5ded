"""`soundmark projects`: the parts of an organisation that Codes belong to."""

from typing import Annotated

import typer
from soundmark_sdk.client.records import Project as ProjectRecord

from soundmark.cli import allowed_hosts
from soundmark.cli.api import open_client, show_made, show_page
from soundmark.cli.defaults import TenantChoice, save_choice
from soundmark.cli.leaving import DeletionOptions, Out, delete_subject, find_project, save_archive, show_preflight
from soundmark.cli.options import (
    Connection,
    Organization,
    OrganizationCall,
    Paging,
    Project,
    ProjectCall,
    Quiet,
    command,
)
from soundmark.cli.secret_output import Force
from soundmark.cli.service import find_service

app = typer.Typer(add_completion=False, no_args_is_help=True)
app.add_typer(allowed_hosts.app)

_HEADINGS = ("Project", "Name", "Created", "Deletion requested")


@app.callback()
def projects() -> None:
    """Create, list, rename, restrict, export and delete projects, over Core's API. An API key cannot do this."""


@command(app)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that no other project of the organisation has.")],
    *,
    use: Annotated[bool, typer.Option("--use", help="Make it the default, as `soundmark use` does.")] = False,
    quiet: Quiet = False,
    call: OrganizationCall,
) -> None:
    """Create a project."""
    with open_client(call.connection, call.organization) as client:
        made = client.projects.create(name)
    if use:
        save_choice(find_service(call.connection).base_url, TenantChoice(made.organization_id, made.id))
    show_made(made, _HEADINGS, _row(made), as_json=call.as_json, quiet=quiet)


@command(app, "list")
def list_projects(*, paging: Paging, call: OrganizationCall) -> None:
    """List the projects of an organisation, newest first."""
    with open_client(call.connection, call.organization) as client:
        page = client.projects.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


@command(app)
def rename(name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")], *, call: ProjectCall) -> None:
    """Rename a project."""
    with open_client(call.connection, call.organization, call.project) as client:
        renamed = client.projects.rename(name)
    show_made(renamed, _HEADINGS, _row(renamed), as_json=call.as_json)


@command(app)
def export(
    *,
    organization: Organization = None,
    project: Project = None,
    out: Out = None,
    force: Force = False,
    connection: Connection,
) -> None:
    """Export a project to one signed file, which `soundmark archive verify` verifies."""
    with open_client(connection, organization, project) as client:
        save_archive(find_project(client), out, force=force)


@command(app)
def preflight(*, call: ProjectCall) -> None:
    """Preview the deletion of a project: what it would delete, and what blocks it. Changes nothing."""
    with open_client(call.connection, call.organization, call.project) as client:
        show_preflight(find_project(client), as_json=call.as_json)


@command(app)
def delete(*, deletion: DeletionOptions, call: ProjectCall) -> None:
    """Permanently delete a project and everything in it, and show where the deletion certificate is.

    The command shows what it would delete and asks for the full id. If it is interrupted, run it again: it resumes the
    deletion. --json prints the certificate.
    """
    with open_client(call.connection, call.organization, call.project) as client:
        address = find_service(call.connection).base_url
        delete_subject(client, find_project(client), deletion, base_url=address, as_json=call.as_json)


def _row(project: ProjectRecord) -> tuple[object, ...]:
    return (project.id, project.name, project.created_at, project.deletion_requested_at)
