"""The pages of organisations."""

from typing import Final

from starlette.responses import Response
from starlette.routing import Route

from soundmark.console import leaving
from soundmark.console.downloads import answer_download
from soundmark.console.pages.organizations.home import show_home
from soundmark.console.routing import form_page, page
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit


async def show_list(visit: Visit) -> Response:
    """Show the organisations that the person belongs to."""
    organizations = await visit.core.organizations.page(cursor=visit.query("cursor"))
    return visit.page("organizations/list.html", organizations=organizations)


async def create(visit: Visit) -> Response:
    """Create an organisation."""
    organization = await visit.core.organizations.create(visit.form.text("name"))
    visit.console.directory.forget(visit.signed_in.subject)
    return visit.redirect(f"/organizations/{organization.id}/projects", "organizations.created", name=organization.name)


async def show_one(visit: Visit) -> Response:
    """Show the home page, or a form for its name that was sent there, as before the settings had a page."""
    return await (show_settings(visit) if visit.form else show_home(visit))


async def show_settings(visit: Visit) -> Response:
    """Show the name and id of an organisation, and the ways to leave it.

    Raises: TenantUnknown for a form that was sent while Core could not name the organisation.
    """
    if visit.organization is None:
        raise TenantUnknown
    return visit.page("organizations/settings.html")


async def rename(visit: Visit) -> Response:
    """Rename an organisation."""
    await visit.core.organizations.rename(visit.form.text("name"))
    visit.console.directory.forget(visit.signed_in.subject)
    return visit.redirect(f"{visit.tenant_path}/settings", "organizations.renamed")


async def export(visit: Visit) -> Response:
    """Download the archive of an organisation."""
    return await answer_download(
        visit,
        visit.core.organizations.export,
        f"{visit.organization_id}.svc-organization-archive-v1.json",
        "application/json",
    )


async def show_deletion(visit: Visit) -> Response:
    """Show what the deletion of an organisation would delete, and ask for its confirmation."""
    return await leaving.show_deletion(visit, visit.core.organizations, visit.organization)


async def delete(visit: Visit) -> Response:
    """Delete an organisation for good, and show the certificate."""
    return await leaving.delete_tenant(visit, visit.core.organizations)


async def show_certificate(visit: Visit) -> Response:
    """Show the certificate of a completed deletion."""
    certificate = await visit.core.get_deletion_certificate(visit.parameter("certificate_id"))
    address = visit.console.addresses.core
    return visit.page("organizations/deleted.html", certificate=certificate, address=address)


_ONE: Final = "/organizations/{organization_id}"
routes: Final[list[Route]] = [
    form_page("/organizations", show_list, create),
    form_page(_ONE, show_one, rename),
    form_page(f"{_ONE}/settings", show_settings, rename),
    page(f"{_ONE}/export", export, offered_by=f"{_ONE}/settings"),
    form_page(f"{_ONE}/delete", show_deletion, delete),
    page("/deletions/{certificate_id}", show_certificate),
]
