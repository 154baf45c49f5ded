"""What was sent to an endpoint, and what is to be sent again."""

import asyncio
import json
from datetime import datetime
from typing import cast

from soundmark_sdk.client.records import DeliveryStatus, WebhookReplay
from starlette.responses import Response

from soundmark.console.forms import FieldRefused
from soundmark.console.visit import Visit


async def show_deliveries(visit: Visit) -> Response:
    """Show the deliveries to an endpoint, all or those of one status."""
    endpoint_id = visit.parameter("endpoint_id")
    endpoint, deliveries = await asyncio.gather(
        visit.core.webhooks.get(endpoint_id),
        visit.core.webhooks.deliveries_page(
            endpoint_id,
            # Core refuses what is no status.
            status=cast("DeliveryStatus | None", visit.query("status")),
            cursor=visit.query("cursor"),
        ),
    )
    return visit.page("webhooks/deliveries.html", endpoint=endpoint, deliveries=deliveries)


async def show_event(visit: Visit) -> Response:
    """Show the message of an event."""
    event_id = visit.parameter("event_id")
    event = await visit.core.webhooks.get_event(event_id)
    message = json.dumps(event.document, ensure_ascii=False, indent=2)
    return visit.page("webhooks/event.html", event=event, event_id=event_id, message=message)


async def show_replay(visit: Visit) -> Response:
    """Show the form with which events are sent again."""
    endpoint = await visit.core.webhooks.get(visit.parameter("endpoint_id"))
    return visit.page("webhooks/replay.html", endpoint=endpoint, event_ids=_chosen_events(visit))


async def replay(visit: Visit) -> Response:
    """Send the chosen events again, or those of a period."""
    endpoint_id = visit.parameter("endpoint_id")
    chosen = _chosen_events(visit)
    if chosen:
        replayed = await visit.core.webhooks.replay_events(endpoint_id, chosen)
    else:
        replayed = await _replay_period(visit, endpoint_id)
    path = f"{visit.tenant_path}/webhooks/{endpoint_id}/deliveries"
    return visit.redirect(path, "webhooks.replayed", count=replayed.replayed_count)


async def _replay_period(visit: Visit, endpoint_id: str) -> WebhookReplay:
    if visit.form.texts("chosen"):
        raise FieldRefused("event_ids", "webhooks.nothing_chosen")
    from_at, to_at = _read_moment(visit, "from"), _read_moment(visit, "to")
    return await visit.core.webhooks.replay(endpoint_id, from_at=from_at, to_at=to_at)


def _read_moment(visit: Visit, name: str) -> datetime:
    moment = visit.form.instant(name)
    if moment is None:
        raise FieldRefused(name, "forms.not_a_time")
    return moment


def _chosen_events(visit: Visit) -> list[str]:
    """Return each event once: several of its deliveries may be ticked."""
    return [*dict.fromkeys(visit.form.texts("event_ids"))]
