"""`soundmark integrations`: connections that measure the audience of a project's Codes."""

from typing import Annotated

import typer
from soundmark_sdk.client.records import AudienceMode, Integration

from soundmark.cli.api import check_new_name, open_client, show_made, show_outcome, show_page
from soundmark.cli.options import NewName, NoName, Paging, ProjectCall, Quiet, command
from soundmark.cli.secret_output import SecretOutput, make_with_secret

app = typer.Typer(add_completion=False, no_args_is_help=True)

IntegrationId = Annotated[str, typer.Argument(metavar="INTEGRATION", help="The integration's id.")]
_HEADINGS = ("Integration", "Name", "Mode", "Retention", "Status", "Created", "Revoked")


@app.callback()
def integrations() -> None:
    """Create, list, rename and revoke Audience integrations, and change their retention, secret and Core key."""


@command(app)
def create(
    *,
    mode: Annotated[
        AudienceMode, typer.Option(help="demo measures 100 events a month; the others need an entitlement.")
    ],
    retention_days: Annotated[
        int, typer.Option(metavar="DAYS", min=1, help="Days to keep events; at most 14 in demo mode.")
    ],
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A display name. It need not be unique.")] = None,
    output: SecretOutput,
    quiet: Quiet = False,
    call: ProjectCall,
) -> None:
    """Create an integration. Its HMAC secret, with which the publisher signs, is shown only once."""
    make_with_secret(
        call,
        lambda client: client.integrations.create(mode, retention_days=retention_days, name=name),
        _HEADINGS,
        _row,
        output=output,
        quiet=quiet,
        member="hmac_secret",
    )


@command(app, "list")
def list_integrations(*, paging: Paging, call: ProjectCall) -> None:
    """List a project's integrations, newest first, including revoked ones."""
    with open_client(call.connection, call.organization, call.project) as client:
        page = client.integrations.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


@command(app)
def rename(integration_id: IntegrationId, name: NewName = None, *, no_name: NoName = False, call: ProjectCall) -> None:
    """Rename an integration, regardless of its status."""
    check_new_name(name, no_name=no_name)
    with open_client(call.connection, call.organization, call.project) as client:
        renamed = client.integrations.rename(integration_id, name)
    show_made(renamed, _HEADINGS, _row(renamed), as_json=call.as_json)


@command(app)
def revoke(integration_id: IntegrationId, *, call: ProjectCall) -> None:
    """Revoke an integration: it measures no more events, but its reports stay available. Repeating it is safe."""
    with open_client(call.connection, call.organization, call.project) as client:
        revoked = client.integrations.revoke(integration_id)
    show_outcome(revoked, f"{revoked.id} is {revoked.status}", as_json=call.as_json)


@command(app, "rotate-secret")
def rotate_secret(integration_id: IntegrationId, *, output: SecretOutput, call: ProjectCall) -> None:
    """Give an active integration a new HMAC secret, shown only once. The old one stops working immediately."""
    make_with_secret(
        call,
        lambda client: client.integrations.rotate_secret(integration_id),
        _HEADINGS,
        _row,
        output=output,
        member="hmac_secret",
    )


@command(app, "set-retention")
def set_retention(
    integration_id: IntegrationId,
    retention_days: Annotated[int, typer.Argument(metavar="DAYS", min=1, help="Days to keep events.")],
    *,
    call: ProjectCall,
) -> None:
    """Change how many days an integration keeps events. Older events are deleted immediately."""
    with open_client(call.connection, call.organization, call.project) as client:
        changed = client.integrations.change_retention(integration_id, retention_days)
    show_outcome(
        changed,
        f"{changed.integration_id} keeps events for {changed.retention_days} days "
        f"(before: {changed.previous_retention_days}); {changed.deleted_events} events were deleted",
        as_json=call.as_json,
    )


@command(app, "replace-core-key")
def replace_core_key(integration_id: IntegrationId, *, call: ProjectCall) -> None:
    """Make an integration trust Core's active signing key. `soundmark keys rotate` does this automatically."""
    with open_client(call.connection, call.organization, call.project) as client:
        replaced = client.integrations.replace_core_key(integration_id)
    show_outcome(replaced, f"{replaced.integration_id} trusts {replaced.core_key_id}", as_json=call.as_json)


def _row(integration: Integration) -> tuple[object, ...]:
    return (
        integration.id,
        integration.name,
        integration.mode,
        f"{integration.retention_days} days",
        integration.status,
        integration.created_at,
        integration.revoked_at,
    )
