"""Every organisation, and its suspension."""

from typing import Final, Literal, cast

from soundmark_sdk.client.records import PlatformOrganization
from starlette.responses import Response

from soundmark.console.forms import FieldRefused, Form
from soundmark.console.pages.platform.catalog import read_id
from soundmark.console.parts import read_part
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

PATH: Final = "/platform/organizations"
_FIELD: Final = "organization_id"
_ID_PREFIX: Final = "org_"
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
    return visit.redirect(PATH, "platform.suspended")


async def restore(visit: Visit) -> Response:
    """End the suspension of an organisation."""
    organization_id = visit.parameter("suspended_id")
    await visit.core.platform.restore(organization_id)
    return visit.redirect(PATH, "platform.restored")


async def list_newest(visit: Visit) -> list[PlatformOrganization]:
    """Return the newest organisations, which a form offers to choose from; none if they cannot be read."""
    newest = await read_part(visit.core.platform.organizations_page())
    return [] if newest is None else list(newest.data)


async def read_organization(visit: Visit) -> str:
    """Return the id of the organisation that a person typed: an id, a whole name, or the beginning of one.

    Raises: FieldRefused if no organisation or several match. soundmark_sdk.ClientFailure.
    """
    typed = read_id(visit.form, _FIELD)
    if typed.startswith(_ID_PREFIX):
        return typed
    found = (await visit.core.platform.organizations_page(search=typed)).data
    matching = [each for each in found if each.name.casefold() == typed.casefold()] or found
    match matching:
        case [organization]:
            return organization.id
        case []:
            raise FieldRefused(_FIELD, "platform.organization.unknown")
        case _:
            raise FieldRefused(_FIELD, "platform.organization.several")


async def _find(visit: Visit) -> PlatformOrganization:
    organization_id = visit.parameter("suspended_id")
    found = (await visit.core.platform.organizations_page(search=organization_id, limit=1)).data
    if not found or found[0].id != organization_id:
        raise TenantUnknown
    return found[0]
