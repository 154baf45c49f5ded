"""The pages of Audience integrations."""

import asyncio
from typing import Final, cast

from soundmark_sdk.client.records import AudienceMode, Integration, IntegrationWithSecret
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.lookups import find_integration
from soundmark.console.pages.integrations.modes import RETENTION_DAYS, has_legacy_totals, list_modes
from soundmark.console.routing import action, form_page
from soundmark.console.visit import Visit

_CREATED: Final = 201


async def show_list(visit: Visit) -> Response:
    """Show the integrations of a project."""
    integrations, modes, has_legacy = await asyncio.gather(
        visit.core.integrations.page(cursor=visit.query("cursor")), list_modes(visit), has_legacy_totals(visit)
    )
    return visit.page("integrations/list.html", integrations=integrations, modes=modes, has_legacy=has_legacy)


async def create(visit: Visit) -> Response:
    """Create an integration and show its secret, which no later page can show."""
    form, mode = visit.form, visit.form.text("mode")
    has_days = form.has("retention_days") or mode not in RETENTION_DAYS
    integration = await visit.core.integrations.create(
        cast("AudienceMode", mode),  # The API judges it.
        retention_days=form.integer("retention_days") if has_days else RETENTION_DAYS[mode],
        name=visit.form.text("name") or None,
    )
    return _show_secret(visit, integration, _CREATED)


async def show_one(visit: Visit) -> Response:
    """Show one integration and what can be done with it."""
    return visit.page("integrations/overview.html", integration=await find_integration(visit))


async def change_retention(visit: Visit) -> Response:
    """Change how long an integration keeps its events; fewer days only after a confirmation."""
    days = visit.form.integer("retention_days")
    integration = await find_integration(visit)
    # Core refuses fewer days than one, so there is nothing to confirm.
    if 1 <= days < integration.retention_days and visit.form.text("confirmed") != "yes":
        fields = {"retention_days": days, "confirmed": "yes"}
        return visit.page("integrations/confirm.html", integration=integration, act="change_retention", fields=fields)
    changed = await visit.core.integrations.change_retention(integration.id, days)
    return visit.redirect(
        _path_of(visit, integration),
        "integrations.retention_changed",
        previous=changed.previous_retention_days,
        current=changed.retention_days,
        events=changed.deleted_events,
        days=changed.deleted_integrity_days,
    )


async def show_name(visit: Visit) -> Response:
    """Show the name of an integration, to be changed or removed."""
    visit.require_managing_role()
    return visit.page("integrations/name.html", integration=await find_integration(visit))


async def rename(visit: Visit) -> Response:
    """Rename an integration; an empty name removes it."""
    name = visit.form.text("name") or None
    integration = await visit.core.integrations.rename(visit.parameter("integration_id"), name)
    return visit.redirect(_path_of(visit, integration), "integrations.renamed")


async def show_rotation(visit: Visit) -> Response:
    """Ask for a confirmation before the secret is replaced."""
    visit.require_managing_role()
    integration = await find_integration(visit)
    return visit.page("integrations/confirm.html", integration=integration, act="rotate_secret", fields={})


async def rotate_secret(visit: Visit) -> Response:
    """Replace the secret and show the new one, which no later page can show."""
    integration = await visit.core.integrations.rotate_secret(visit.parameter("integration_id"))
    return _show_secret(visit, integration)


async def show_revocation(visit: Visit) -> Response:
    """Ask for a confirmation before an integration is revoked."""
    visit.require_managing_role()
    integration = await find_integration(visit)
    return visit.page("integrations/confirm.html", integration=integration, act="revoke", fields={})


async def revoke(visit: Visit) -> Response:
    """Revoke an integration; its reports stay."""
    integration = await visit.core.integrations.revoke(visit.parameter("integration_id"))
    return visit.redirect(_path_of(visit, integration), "integrations.revoked")


async def replace_core_key(visit: Visit) -> Response:
    """Make an integration trust the key with which Core signs now."""
    replaced = await visit.core.integrations.replace_core_key(visit.parameter("integration_id"))
    path = f"{visit.tenant_path}/integrations/{replaced.integration_id}"
    return visit.redirect(path, "integrations.core_key_replaced")


def _show_secret(visit: Visit, integration: IntegrationWithSecret, status: int = 200) -> Response:
    """Show a secret once, in the answer to the form itself: nothing that could be loaded again has it."""
    return visit.page("integrations/secret.html", status, integration=integration)


def _path_of(visit: Visit, integration: Integration) -> str:
    return f"{visit.tenant_path}/integrations/{integration.id}"


_ALL: Final = "/organizations/{organization_id}/projects/{project_id}/integrations"
_ONE: Final = f"{_ALL}/{{integration_id}}"
routes: Final[list[Route]] = [
    form_page(_ALL, show_list, create),
    form_page(_ONE, show_one, change_retention),
    form_page(f"{_ONE}/name", show_name, rename),
    form_page(f"{_ONE}/secret", show_rotation, rotate_secret),
    form_page(f"{_ONE}/revoke", show_revocation, revoke),
    action(f"{_ONE}/core-key", replace_core_key),
]
