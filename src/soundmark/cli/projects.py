"""`soundmark projects`: the parts of an organisation that Codes belong to."""

from typing import Annotated

import typer
from soundmark_sdk.client.records import Project as ProjectRecord

from soundmark.cli.api import (
    AsJson,
    BaseUrl,
    KeyFile,
    Organization,
    PageCursor,
    PageLimit,
    Project,
    Quiet,
    UpDir,
    open_client,
    show_json,
    show_made,
    show_page,
)
from soundmark.cli.defaults import TenantChoice, save_choice
from soundmark.cli.leaving import (
    CertificateFile,
    Confirmation,
    Out,
    delete_subject,
    find_project,
    save_archive,
    show_preflight,
)
from soundmark.cli.secret_output import Force
from soundmark.cli.service import find_service

app = typer.Typer(add_completion=False, no_args_is_help=True)

_HEADINGS = ("Project", "Name", "Created", "Deletion requested")


@app.callback()
def projects() -> None:
    """Create, list, rename, export and delete projects, over Core's API. A server key cannot do this."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that no other project of the organisation has.")],
    *,
    organization: Organization = None,
    use: Annotated[bool, typer.Option("--use", help="Make it the default, as `soundmark use` does.")] = False,
    quiet: Quiet = False,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """Create a project."""
    with open_client(base_url, key_file, data_dir, organization) as client:
        made = client.projects.create(name)
    if use:
        save_choice(find_service(base_url, data_dir).base_url, TenantChoice(made.organization_id, made.id))
    show_made(made, made.id, _HEADINGS, _row(made), as_json=as_json, quiet=quiet)


@app.command("list")
def list_projects(
    *,
    organization: Organization = None,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """List the projects of an organisation, newest first."""
    with open_client(base_url, key_file, data_dir, organization) as client:
        page = client.projects.page(limit=limit, cursor=cursor)
    show_page(page, _HEADINGS, _row, as_json=as_json)


@app.command()
def rename(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    *,
    organization: Organization = None,
    project: Project = None,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """Rename a project."""
    with open_client(base_url, key_file, data_dir, organization, project) as client:
        renamed = client.projects.rename(name)
    show_made(renamed, renamed.id, _HEADINGS, _row(renamed), as_json=as_json, quiet=False)


@app.command()
def export(
    *,
    organization: Organization = None,
    project: Project = None,
    out: Out = None,
    force: Force = False,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
) -> None:
    """Write everything of a project to one signed file: `soundmark archive verify` verifies it."""
    with open_client(base_url, key_file, data_dir, organization, project) as client:
        save_archive(find_project(client), out, force=force)


@app.command()
def preflight(
    *,
    organization: Organization = None,
    project: Project = None,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """Show what deleting a project would delete, and what stands in its way. Nothing is changed."""
    with open_client(base_url, key_file, data_dir, organization, project) as client:
        subject = find_project(client)
        found = subject.group.closure_preflight()
    if as_json:
        show_json(found.document)
    else:
        show_preflight(subject, found)


@app.command()
def delete(
    *,
    organization: Organization = None,
    project: Project = None,
    confirmation: Confirmation = None,
    certificate: CertificateFile = None,
    force: Force = False,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete a project and everything in it, for good, and show where the certificate of the deletion is.

    The command shows what it would delete and asks for the full id. If it is interrupted, run it again: it resumes the
    deletion. --json prints the certificate.
    """
    address = find_service(base_url, data_dir).base_url
    with open_client(base_url, key_file, data_dir, organization, project) as client:
        delete_subject(
            client,
            find_project(client),
            confirmation=confirmation,
            certificate_file=certificate,
            base_url=address,
            as_json=as_json,
            force=force,
        )


def _row(project: ProjectRecord) -> tuple[object, ...]:
    return (project.id, project.name, project.created_at, project.deletion_requested_at)
