"""`soundmark api-keys`: credentials for servers, each for one project."""

from enum import StrEnum
from typing import Annotated

import typer
from soundmark_sdk.client.records import ApiKey

from soundmark.cli.api import check_new_name, open_client, show_made, show_outcome, show_page
from soundmark.cli.options import NewName, NoName, OrganizationCall, Paging, ProjectCall, ProjectFilter, Quiet, command
from soundmark.cli.secret_output import SecretOutput, make_with_secret

app = typer.Typer(add_completion=False, no_args_is_help=True)


class Scope(StrEnum):
    """A scope of a key, as an enumeration because Typer takes no list of Literals."""

    CODES_READ = "codes:read"
    CODES_WRITE = "codes:write"
    AUDIENCE_READ = "audience:read"
    AUDIENCE_WRITE = "audience:write"


KeyId = Annotated[str, typer.Argument(metavar="KEY", help="The key's id, not its secret.")]
_HEADINGS = ("Key", "Name", "Scopes", "Status", "Created", "Expires", "Last used")


@app.callback()
def api_keys() -> None:
    """Create, list, rename and revoke API keys, and rotate their secrets. An API key cannot do this itself."""


@command(app)
def create(
    *,
    scopes: Annotated[
        list[Scope], typer.Option("--scope", help="A scope of the key. Repeat the option for several scopes.")
    ],
    expires_in_days: Annotated[
        int | None, typer.Option(metavar="DAYS", min=1, max=365, help="Days until it expires. Default: 90.")
    ] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A display name. It need not be unique.")] = None,
    output: SecretOutput,
    quiet: Quiet = False,
    call: ProjectCall,
) -> None:
    """Create a key for one project. Its secret is shown only once."""
    make_with_secret(
        call,
        lambda client: client.api_keys.create(
            {scope.value for scope in scopes}, expires_in_days=expires_in_days, name=name
        ),
        _HEADINGS,
        _row,
        output=output,
        quiet=quiet,
    )


@command(app, "list")
def list_api_keys(*, project: ProjectFilter = None, paging: Paging, call: OrganizationCall) -> None:
    """List an organisation's keys, newest first, including revoked and expired ones."""
    with open_client(call.connection, call.organization) as client:
        page = client.api_keys.page(project_id=project, limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


@command(app)
def rename(api_key_id: KeyId, name: NewName = None, *, no_name: NoName = False, call: OrganizationCall) -> None:
    """Rename a key, regardless of its status."""
    check_new_name(name, no_name=no_name)
    with open_client(call.connection, call.organization) as client:
        renamed = client.api_keys.rename(api_key_id, name)
    show_made(renamed, _HEADINGS, _row(renamed), as_json=call.as_json)


@command(app)
def revoke(api_key_id: KeyId, *, call: OrganizationCall) -> None:
    """Revoke a key immediately and permanently. Repeating it is safe."""
    with open_client(call.connection, call.organization) as client:
        key = client.api_keys.revoke(api_key_id)
    show_outcome(key, f"{key.id} is {key.status}", as_json=call.as_json)


@command(app, "rotate-secret")
def rotate_secret(api_key_id: KeyId, *, output: SecretOutput, call: OrganizationCall) -> None:
    """Give an active key a new secret, shown only once. The old one stops working immediately."""
    make_with_secret(call, lambda client: client.api_keys.rotate_secret(api_key_id), _HEADINGS, _row, output=output)


def _row(key: ApiKey) -> tuple[object, ...]:
    return (key.id, key.name, " ".join(key.scopes), key.status, key.created_at, key.expires_at, key.last_used_at)
