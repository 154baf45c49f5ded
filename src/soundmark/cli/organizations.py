"""`soundmark organizations`: the tenants that a person belongs to."""

from typing import Annotated

import typer
from soundmark_sdk.client.records import Organization as OrganizationRecord

from soundmark.cli.api import (
    AsJson,
    BaseUrl,
    KeyFile,
    Organization,
    PageCursor,
    PageLimit,
    Quiet,
    UpDir,
    open_client,
    show_made,
    show_page,
)
from soundmark.cli.defaults import TenantChoice, save_choice
from soundmark.cli.service import find_service

app = typer.Typer(add_completion=False, no_args_is_help=True)

_HEADINGS = ("Organisation", "Name", "Your role", "Created", "Deletion requested")


@app.callback()
def organizations() -> None:
    """Create, list and rename organisations, over Core's API. A server key cannot do this."""


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="1 to 120 characters.")],
    *,
    use: Annotated[bool, typer.Option("--use", help="Make it the default, as `soundmark use` does.")] = False,
    quiet: Quiet = False,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """Create an organisation, with you as its owner."""
    with open_client(base_url, key_file, data_dir) as client:
        made = client.organizations.create(name)
    if use:
        save_choice(find_service(base_url, data_dir).base_url, TenantChoice(made.id))
    show_made(made, made.id, _HEADINGS, _row(made), as_json=as_json, quiet=quiet)


@app.command("list")
def list_organizations(
    *,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """List the organisations that you belong to, newest first."""
    with open_client(base_url, key_file, data_dir) as client:
        page = client.organizations.page(limit=limit, cursor=cursor)
    show_page(page, _HEADINGS, _row, as_json=as_json)


@app.command()
def rename(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    *,
    organization: Organization = None,
    base_url: BaseUrl = None,
    key_file: KeyFile = None,
    data_dir: UpDir = None,
    as_json: AsJson = False,
) -> None:
    """Rename an organisation."""
    with open_client(base_url, key_file, data_dir, organization) as client:
        renamed = client.organizations.rename(name)
    show_made(renamed, renamed.id, _HEADINGS, _row(renamed), as_json=as_json, quiet=False)


def _row(organization: OrganizationRecord) -> tuple[object, ...]:
    return (
        organization.id,
        organization.name,
        organization.role,
        organization.created_at,
        organization.deletion_requested_at,
    )
