"""The pages of webhook endpoints."""

import asyncio
from typing import Final

from soundmark_sdk.client.records import Project
from soundmark_sdk.client.requests import UNCHANGED, Unchanged
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.event_types import EVENT_TYPES, group_types, write_example
from soundmark.console.forms import FieldRefused, Form
from soundmark.console.pages.webhooks import deliveries
from soundmark.console.parts import read_part
from soundmark.console.routing import action, form_page, page
from soundmark.console.visit import Visit

_PROJECTS_MAX: Final = 500  # In one list to choose from.
_DELIVERIES_SHOWN: Final = 5  # The latest, beside their endpoint.


async def show_list(visit: Visit) -> Response:
    """Show the endpoints of an organisation."""
    endpoints = await visit.core.webhooks.page(cursor=visit.query("cursor"))
    return visit.page("webhooks/list.html", endpoints=endpoints)


async def show_new(visit: Visit) -> Response:
    """Show the form of a new endpoint, for all events or for the one that the URL names."""
    visit.require_managing_role()
    projects = await _list_projects(visit)
    wanted = visit.query("event_type")
    return visit.page(
        "webhooks/new.html",
        projects=projects,
        groups=group_types(visit, ()),
        chosen=[wanted] if wanted in EVENT_TYPES else None,
        example=write_example(visit),
    )


async def create(visit: Visit) -> Response:
    """Create an endpoint, and show its secret once."""
    endpoint = await visit.core.webhooks.create(
        visit.form.text("url"),
        event_types=_read_types(visit),
        description=visit.form.text("description") or None,
        project_id=visit.form.text("project_id") or None,
    )
    return visit.page("webhooks/secret.html", endpoint=endpoint, is_new=True)


async def show_endpoint(visit: Visit) -> Response:
    """Show an endpoint with its latest deliveries, and the form that changes it."""
    endpoint, recent = await asyncio.gather(
        visit.core.webhooks.get(_endpoint_id(visit)),
        read_part(visit.core.webhooks.deliveries_page(_endpoint_id(visit), limit=_DELIVERIES_SHOWN)),
    )
    groups = group_types(visit, endpoint.event_types or ())
    return visit.page(
        "webhooks/endpoint.html", endpoint=endpoint, deliveries=recent, groups=groups, example=write_example(visit)
    )


async def update(visit: Visit) -> Response:
    """Change an endpoint: what differs from what the form was shown with, so that another person's changes stay."""
    types = _read_types(visit)
    written = "all" if types is None else " ".join(sorted(types))
    event_types = UNCHANGED if visit.form.texts("shown_types") == [written] else types
    url, description = _read_change(visit.form, "url"), _read_change(visit.form, "description") or None
    if url is description is event_types is UNCHANGED:
        return visit.redirect(_path(visit), "campaigns.unchanged")
    await visit.core.webhooks.update(_endpoint_id(visit), url=url, event_types=event_types, description=description)
    return visit.redirect(_path(visit), "webhooks.changed")


async def switch(visit: Visit) -> Response:
    """Enable or disable an endpoint."""
    is_wanted = visit.form.text("enabled") == "true"
    await visit.core.webhooks.update(_endpoint_id(visit), enabled=is_wanted)
    return visit.redirect(_path(visit), "webhooks.was_enabled" if is_wanted else "webhooks.was_disabled")


async def rotate_secret(visit: Visit) -> Response:
    """Give an endpoint a new secret, and show it once."""
    endpoint = await visit.core.webhooks.rotate_secret(_endpoint_id(visit))
    return visit.page("webhooks/secret.html", endpoint=endpoint, is_new=False)


async def send_test(visit: Visit) -> Response:
    """Send a test message to an endpoint, and show what came back."""
    result = await visit.core.webhooks.test(_endpoint_id(visit))
    return visit.page("webhooks/tested.html", result=result, endpoint_path=_path(visit))


async def show_deletion(visit: Visit) -> Response:
    """Show the endpoint that would be deleted, and ask for confirmation."""
    endpoint = await visit.core.webhooks.get(_endpoint_id(visit))
    return visit.page("webhooks/delete.html", endpoint=endpoint)


async def delete(visit: Visit) -> Response:
    """Delete an endpoint."""
    await visit.core.webhooks.delete(_endpoint_id(visit))
    return visit.redirect(f"{visit.tenant_path}/webhooks", "webhooks.deleted")


async def _list_projects(visit: Visit) -> list[Project]:
    projects: list[Project] = []
    async for project in visit.core.projects.list():
        projects.append(project)
        if len(projects) == _PROJECTS_MAX:
            break
    return projects


def _read_change(form: Form, name: str) -> str | Unchanged:
    return UNCHANGED if form.texts(f"shown_{name}") == [form.text(name)] else form.text(name)


def _read_types(visit: Visit) -> list[str] | None:
    """Return the chosen types, or None for all events.

    Raises: FieldRefused if the form says both, as a wrong guess would send too much or too little.
    """
    chosen = visit.form.texts("event_types")
    if visit.form.text("which") != "all":
        return chosen
    if chosen:
        raise FieldRefused("event_types", "webhooks.all_and_chosen")
    return None


def _endpoint_id(visit: Visit) -> str:
    return visit.parameter("endpoint_id")


def _path(visit: Visit) -> str:
    return f"{visit.tenant_path}/webhooks/{_endpoint_id(visit)}"


_ALL: Final = "/organizations/{organization_id}/webhooks"
_ONE: Final = f"{_ALL}/{{endpoint_id}}"
routes: Final[list[Route]] = [
    page(_ALL, show_list),
    form_page(f"{_ALL}/new", show_new, create),
    page(f"{_ALL}/events/{{event_id}}", deliveries.show_event),
    form_page(_ONE, show_endpoint, update),
    action(f"{_ONE}/enabled", switch),
    action(f"{_ONE}/secret", rotate_secret),
    action(f"{_ONE}/test", send_test),
    page(f"{_ONE}/deliveries", deliveries.show_deliveries),
    form_page(f"{_ONE}/replay", deliveries.show_replay, deliveries.replay),
    form_page(f"{_ONE}/delete", show_deletion, delete),
]
