"""The paths of the console's pages, and something for each of them to show."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from starlette.routing import Route

from soundmark.console import app
from support.console.client import ConsoleClient
from support.tenancy.tenant import Tenant

_MOMENT = "2026-11-20T10:00:00.000Z"
_TICKET = {"id": f"tkt_{'t' * 22}", "request_id": f"supreq_{'s' * 16}", "subject": "No sound", "status": "active"}
_CHECKOUT = {"id": f"bco_{'b' * 22}", "status": "pending", "offer_id": "offer_card"}
_EVENT_ID = f"evn_{'e' * 22}"


def list_paths(ids: Mapping[str, str]) -> list[str]:
    """Return the path of each page whose parameters are all among these."""
    return [
        re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], route.path)
        for route in app.PAGES
        if isinstance(route, Route) and set(re.findall(r"\{(\w+)\}", route.path)) <= ids.keys()
    ]


async def make_one_of_each(
    operator: ConsoleClient, tenant: Tenant, change: Callable[[Any], Any] = lambda document: document
) -> dict[str, str]:
    """Make one of everything that has a page, and return the ids by the names of the parameters of paths.

    Support tickets, purchases and events are answers of the test, each changed by `change`.
    """
    campaign = await tenant.make_campaign()
    integration = await tenant.make_integration(name="Studio")
    intent = {"type": "link", "action": "open", "resource": {"url": "https://example.org/", "title": "Tonight"}}
    code = await tenant.make_code(campaign_id=campaign["id"], intent=intent)
    key = await tenant.make_key(name="Playout")
    endpoint = await tenant.make_webhook_endpoint(description="Ours")
    invitation = await tenant.make_invitation()
    ticket = {**_TICKET, "created_at": _MOMENT, "updated_at": _MOMENT}
    messages = [{"author": "customer", "created_at": _MOMENT, "body": "Why?"}]
    checkout = {**_CHECKOUT, "created_at": _MOMENT, "expires_at": _MOMENT}
    for call, document in {
        "support/tickets": {"data": [ticket], "next_cursor": None},
        f"support/tickets/{ticket['id']}": {**ticket, "messages": messages},
        "billing/checkouts": {"data": [checkout]},
        f"billing/checkouts/{checkout['id']}": checkout,
        f"webhook-events/{_EVENT_ID}": {"type": "code.issued", "timestamp": _MOMENT, "data": {}},
    }.items():
        operator.core.answer(f"GET /v1/{call}", 200, change(document))
    return {
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "campaign_id": campaign["id"],
        "xr_id": code["xr_id"],
        "api_key_id": key["id"],
        "integration_id": integration["id"],
        "endpoint_id": endpoint["id"],
        "invitation_id": invitation["id"],
        "ticket_id": ticket["id"],
        "checkout_id": checkout["id"],
        "event_id": _EVENT_ID,
        "suspended_id": tenant.organization_id,
    }
