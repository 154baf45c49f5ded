"""`soundmark webhooks`: endpoints that get an organisation's events."""

from typing import Annotated

import typer
from soundmark_sdk.client import UNCHANGED
from soundmark_sdk.client.records import WebhookEndpoint

from soundmark.cli import webhook_deliveries
from soundmark.cli.api import open_client, show_facts, show_json, show_page
from soundmark.cli.options import Connection, Organization, OrganizationCall, Paging, Quiet, command
from soundmark.cli.secret_output import SecretOutput, make_with_secret
from soundmark.cli.webhook_deliveries import EndpointId
from soundmark.cli.webhook_listening import EndpointProject, EventTypes, listen

app = typer.Typer(add_completion=False, no_args_is_help=True)

Url = Annotated[str, typer.Argument(metavar="URL", help="An https URL without credentials or a fragment.")]
Description = Annotated[str | None, typer.Option(metavar="TEXT", help="A note about the endpoint.")]
_HEADINGS = ("Endpoint", "URL", "Events", "Project", "Enabled", "Created")


@app.callback()
def webhooks() -> None:
    """Create, list, change and test webhook endpoints, and list their deliveries. An API key cannot do this."""


@command(app)
def create(
    url: Url,
    *,
    event_types: EventTypes = None,
    description: Description = None,
    project: EndpointProject = None,
    output: SecretOutput,
    quiet: Quiet = False,
    call: OrganizationCall,
) -> None:
    """Create an endpoint. Its secret, with which the consumer verifies messages, is shown only once."""
    make_with_secret(
        call,
        lambda client: client.webhooks.create(
            url, event_types=event_types, description=description, project_id=project
        ),
        _HEADINGS,
        _row,
        output=output,
        quiet=quiet,
    )


@command(app, "list")
def list_endpoints(*, paging: Paging, call: OrganizationCall) -> None:
    """List an organisation's endpoints, newest first, including disabled ones."""
    with open_client(call.connection, call.organization) as client:
        page = client.webhooks.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


@command(app)
def show(endpoint_id: EndpointId, *, call: OrganizationCall) -> None:
    """Show one endpoint."""
    with open_client(call.connection, call.organization) as client:
        endpoint = client.webhooks.get(endpoint_id)
    _show(endpoint, as_json=call.as_json)


@command(app)
def update(
    endpoint_id: EndpointId,
    *,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The new URL.")] = None,
    event_types: EventTypes = None,
    all_events: Annotated[bool, typer.Option("--all-events", help="Send all types of events.")] = False,
    description: Description = None,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="Enable or disable the endpoint.")] = None,
    call: OrganizationCall,
) -> None:
    """Change an endpoint. `soundmark webhooks replay` resends the events that it missed while it was disabled."""
    if event_types and all_events:
        raise typer.BadParameter("give --event or --all-events, not both")
    types = UNCHANGED if not event_types and not all_events else event_types
    changes = (url, description, enabled)
    if types is UNCHANGED and all(change is None for change in changes):
        raise typer.BadParameter("give at least one change")
    with open_client(call.connection, call.organization) as client:
        endpoint = client.webhooks.update(
            endpoint_id,
            url=UNCHANGED if url is None else url,
            event_types=types,
            description=UNCHANGED if description is None else description,
            enabled=UNCHANGED if enabled is None else enabled,
        )
    _show(endpoint, as_json=call.as_json)


@command(app)
def delete(endpoint_id: EndpointId, *, organization: Organization = None, connection: Connection) -> None:
    """Delete an endpoint and all its deliveries, including pending ones."""
    with open_client(connection, organization) as client:
        client.webhooks.delete(endpoint_id)
    typer.echo(f"{endpoint_id} is deleted")


@command(app, "rotate-secret")
def rotate_secret(endpoint_id: EndpointId, *, output: SecretOutput, call: OrganizationCall) -> None:
    """Give an endpoint a new secret, shown only once. The previous secret also signs for 24 hours."""
    make_with_secret(call, lambda client: client.webhooks.rotate_secret(endpoint_id), _HEADINGS, _row, output=output)


command(app)(webhook_deliveries.deliveries)
command(app)(webhook_deliveries.event)
command(app)(webhook_deliveries.replay)
command(app, "test")(webhook_deliveries.send_test)
command(app)(listen)


def _show(endpoint: WebhookEndpoint, *, as_json: bool) -> None:
    if as_json:
        show_json(endpoint.document)
        return
    more = [("Description", endpoint.description), ("Disabled because", endpoint.disabled_reason)]
    show_facts([*zip(_HEADINGS, _row(endpoint), strict=True), *more])


def _row(endpoint: WebhookEndpoint) -> tuple[object, ...]:
    types = "all" if endpoint.event_types is None else " ".join(endpoint.event_types)
    project = "all" if endpoint.project_id is None else endpoint.project_id
    return (endpoint.id, endpoint.url, types, project, endpoint.enabled, endpoint.created_at)
