"""Every organisation, and its suspension."""

from typing import Final, Literal, cast

from soundmark_sdk.client.records import PlatformOrganization
from starlette.responses import Response

from soundmark.console.forms import FieldRefused, Form
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

PATH: Final = "/platform/organizations"
STATUSES: Final = ("active", "suspended", "closing")


async def show_organizations(visit: Visit) -> Response:
    """Show a page of the organisations that the search in the URL finds."""
    visit.form = Form(visit.request.query_params.multi_items())
    status = visit.query("status")
    organizations = await visit.core.platform.organizations_page(
        search=visit.query("search"),
        # Core refuses what is no status.
        status=cast("Literal['active', 'suspended', 'closing'] | None", status),
        cursor=visit.query("cursor"),
    )
    return visit.page("platform/organizations.html", organizations=organizations, statuses=STATUSES)


async def show_suspension(visit: Visit) -> Response:
    """Show the form that suspends an organisation, or replaces the reason."""
    return visit.page("platform/suspension.html", subject=await _find(visit))


async def suspend(visit: Visit) -> Response:
    """Suspend an organisation, or replace the reason."""
    organization_id, reason = visit.parameter("suspended_id"), visit.form.raw("reason").strip()
    if not reason:
        raise FieldRefused("reason", "platform.reason_missing")
    await visit.core.platform.suspend(organization_id, reason)
    return visit.redirect(PATH, "platform.suspended", id=organization_id)


async def restore(visit: Visit) -> Response:
    """End the suspension of an organisation."""
    organization_id = visit.parameter("suspended_id")
    await visit.core.platform.restore(organization_id)
    return visit.redirect(PATH, "platform.restored", id=organization_id)


async def _find(visit: Visit) -> PlatformOrganization:
    organization_id = visit.parameter("suspended_id")
    found = (await visit.core.platform.organizations_page(search=organization_id, limit=1)).data
    if not found or found[0].id != organization_id:
        raise TenantUnknown
    return found[0]
