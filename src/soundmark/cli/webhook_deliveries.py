"""The commands of `soundmark webhooks` about events and their deliveries."""

from datetime import datetime
from typing import Annotated

import typer
from soundmark_sdk.client.records import DeliveryStatus, WebhookDelivery

from soundmark.cli import Refused
from soundmark.cli.api import open_client, show_json, show_page
from soundmark.cli.options import Connection, Organization, OrganizationCall, Paging, read_moment

EndpointId = Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's id: whe_…")]
_HEADINGS = ("Event", "Type", "Status", "Attempts", "Last answer", "Next attempt")


def deliveries(
    endpoint_id: EndpointId,
    *,
    status: Annotated[DeliveryStatus | None, typer.Option(help="Show only deliveries in this state.")] = None,
    paging: Paging,
    call: OrganizationCall,
) -> None:
    """List the deliveries to an endpoint in the last 30 days, newest first."""
    with open_client(call.connection, call.organization) as client:
        page = client.webhooks.deliveries_page(endpoint_id, status=status, limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


def event(
    event_id: Annotated[str, typer.Argument(metavar="EVENT", help="The event's id: evn_…")],
    *,
    organization: Organization = None,
    connection: Connection,
) -> None:
    """Print an event of the last 30 days as it is sent, as one line of JSON."""
    with open_client(connection, organization) as client:
        found = client.webhooks.get_event(event_id)
    show_json(found.document)


def replay(
    endpoint_id: EndpointId,
    *,
    event_ids: Annotated[
        list[str] | None, typer.Option("--event", metavar="EVENT", help="An event's id. Repeat it for up to 100.")
    ] = None,
    from_at: Annotated[
        datetime | None,
        typer.Option("--from", parser=read_moment, metavar="TIME", help="The start of the period (RFC 3339)."),
    ] = None,
    to_at: Annotated[
        datetime | None,
        typer.Option("--to", parser=read_moment, metavar="TIME", help="The end of the period, exclusive (RFC 3339)."),
    ] = None,
    call: OrganizationCall,
) -> None:
    """Resend events of the last 30 days to an endpoint: those of a period or those named.

    Each event keeps its id, so the consumer can recognise a repeat. Events that still wait for the endpoint are
    skipped. An organisation can make 10 replays a minute and 100,000 deliveries a UTC day.
    """
    by_id, by_time = bool(event_ids), (from_at is not None, to_at is not None)
    if by_id == any(by_time) or any(by_time) != all(by_time):
        raise typer.BadParameter("give either --from and --to, or --event")
    with open_client(call.connection, call.organization) as client:
        if event_ids:
            replayed = client.webhooks.replay_events(endpoint_id, event_ids)
        else:
            assert from_at is not None, "see above"
            assert to_at is not None, "see above"
            replayed = client.webhooks.replay(endpoint_id, from_at=from_at, to_at=to_at)
    if call.as_json:
        show_json(replayed.document)
    else:
        count = replayed.replayed_count
        typer.echo("1 event is sent again" if count == 1 else f"{count} events are sent again")


def send_test(endpoint_id: EndpointId, *, call: OrganizationCall) -> None:
    """Send a test message to an endpoint, even a disabled one, and print the response.

    Exit status 1 if the endpoint did not accept the message.
    """
    with open_client(call.connection, call.organization) as client:
        tested = client.webhooks.test(endpoint_id)
    is_taken = tested.status_code is not None and tested.status_code // 100 == 2  # noqa: PLR2004 - 2xx
    if call.as_json:
        show_json(tested.document)
    elif is_taken:
        typer.echo(f"{endpoint_id} answered {tested.status_code} after {round(tested.duration_ms)} ms")
    if not is_taken:
        reason = tested.error if tested.status_code is None else f"status {tested.status_code}"
        raise Refused(f"{endpoint_id} did not accept the message: {reason}")


def _row(delivery: WebhookDelivery) -> tuple[object, ...]:
    answer = delivery.last_error if delivery.last_status_code is None else delivery.last_status_code
    return (
        delivery.event_id,
        delivery.event_type,
        delivery.status,
        delivery.attempts,
        answer,
        delivery.next_attempt_at,
    )
