"""Deleting an organisation or a project for good."""

from typing import Final, Protocol

from soundmark_sdk.client.records import ClosurePreflight, Organization, Project
from starlette.responses import Response

from soundmark.console.purchases import name_purchases
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit

_PURCHASES: Final = "deletion_billing_active"


class Tenants(Protocol):
    """The organisations or the projects of the API, as its client has them."""

    async def closure_preflight(self) -> ClosurePreflight:
        """Return what a deletion would delete, and what stands in its way."""

    async def delete(self, confirmation: str, /, *, certificate_id: str | None = None) -> str:
        """Delete the tenant, and return the id of the certificate."""


async def show_deletion(visit: Visit, tenants: Tenants, tenant: Organization | Project | None) -> Response:
    """Show what the deletion of the tenant in the URL would delete, and ask for its confirmation.

    Raises: TenantUnknown for a form that was sent while Core could not name the tenant. soundmark_sdk.ClientFailure.
    """
    if tenant is None:
        raise TenantUnknown
    preflight = await tenants.closure_preflight()
    names = await name_purchases(visit) if any(each.code == _PURCHASES for each in preflight.blockers) else {}
    return visit.page("organizations/delete.html", preflight=preflight, names=names, name=tenant.name, id=tenant.id)


async def delete_tenant(visit: Visit, tenants: Tenants) -> Response:
    """Delete the tenant in the URL for good, and show the certificate."""
    with visit.deadline.lifted():  # A deletion takes as long as there is something to delete.
        certificate_id = await tenants.delete(
            visit.form.text("confirmation"),
            certificate_id=visit.form.segment("certificate_id") if visit.form.has("certificate_id") else None,
        )
    visit.console.directory.forget(visit.signed_in.subject)
    return visit.redirect(f"/deletions/{certificate_id}")
