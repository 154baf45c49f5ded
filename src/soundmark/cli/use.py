"""`soundmark use`: choose a person's default organisation and project."""

from typing import Annotated

import typer
from soundmark_sdk.client import Client

from soundmark.cli import Refused
from soundmark.cli.api import open_client
from soundmark.cli.defaults import TenantChoice, find_choice, save_choice
from soundmark.cli.intents import printable
from soundmark.cli.options import Connection, command
from soundmark.cli.service import find_service

app = typer.Typer(add_completion=False)


@command(app)
def use(
    organization: Annotated[
        str | None, typer.Argument(metavar="ORG", help="The organisation's id. Without it, show the current choice.")
    ] = None,
    project: Annotated[str | None, typer.Argument(metavar="PROJECT", help="One of its projects.")] = None,
    *,
    forget: Annotated[bool, typer.Option("--forget", help="Remove the choice.")] = False,
    connection: Connection,
) -> None:
    """Choose the default organisation, and optionally the default project, for other commands.

    The choice is saved for this service, in $XDG_CONFIG_HOME/soundmark/defaults.json or
    ~/.config/soundmark/defaults.json. Calls with an API key use the key's own project instead.
    """
    address = find_service(connection).base_url
    if forget:
        if organization is not None:
            raise typer.BadParameter("give either --forget or an organisation")
        save_choice(address, None)
    elif organization is None:
        _show(address)
    else:
        with open_client(connection, organization) as client:
            _check_project(client, project)
        save_choice(address, TenantChoice(organization, project))
        _show(address)


def _show(address: str) -> None:
    choice = find_choice(address)
    if choice is None:
        raise Refused(f"no organisation is chosen for {printable(address)}")
    what = choice.organization_id + (f" {choice.project_id}" if choice.project_id else "")
    typer.echo(printable(f"{what} at {address}"))


def _check_project(client: Client, project: str | None) -> None:
    """Check that the organisation and the project exist, so that a typing error is found now and not later.

    Raises: Refused for an unknown project; ClientFailure for an organisation that is not the caller's.
    """
    if project is None:
        client.projects.page(limit=1)
    elif project not in {one.id for one in client.projects.list()}:
        raise Refused(f"{printable(project)} is not a project of this organisation")
