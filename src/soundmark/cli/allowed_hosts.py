"""`soundmark projects allowed-hosts` and `allow-hosts`: the hosts to which the links of a project may lead."""

from typing import Annotated

import typer
from soundmark_sdk.client.records import AllowedHosts

from soundmark.cli.api import open_client, show_json
from soundmark.cli.options import ProjectCall, command

app = typer.Typer()


@command(app)
def allowed_hosts(*, call: ProjectCall) -> None:
    """Print the hosts to which the links of a project may lead. An API key can do this too."""
    with open_client(call.connection, call.organization, call.project) as client:
        found = client.projects.allowed_hosts()
    _show(found, as_json=call.as_json)


@command(app)
def allow_hosts(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="HOST…", help="A DNS name, or `*.` and a name for every name below it."),
    ] = None,
    *,
    any_host: Annotated[bool, typer.Option("--any", help="Allow every host again.")] = False,
    no_host: Annotated[bool, typer.Option("--none", help="Allow no host, so that no link is issued.")] = False,
    call: ProjectCall,
) -> None:
    """Set the hosts to which the links of a project may lead; they replace those that were set before.

    From the answer on, no Code is issued whose link leads elsewhere, so a stolen key cannot send listeners to a
    stranger. Codes that were issued before are not affected.
    """
    if (bool(hosts), any_host, no_host).count(True) != 1:
        raise typer.BadParameter("give either one HOST or more, --any, or --none")
    with open_client(call.connection, call.organization, call.project) as client:
        made = client.projects.put_allowed_hosts(None if any_host else hosts or [])
    _show(made, as_json=call.as_json)


def _show(allowed: AllowedHosts, *, as_json: bool) -> None:
    if as_json:
        show_json(allowed.document)
    elif allowed.hosts is None:
        typer.echo("links may lead to any host")
    elif not allowed.hosts:
        typer.echo("no host is allowed: no link is issued")
    else:
        typer.echo("\n".join(allowed.hosts))
