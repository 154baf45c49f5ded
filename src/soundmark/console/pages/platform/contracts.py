"""What concerns one organisation in the catalogue: its contract for measuring, and its accounting customer."""

import asyncio
from typing import Literal, cast

from soundmark_sdk.client.records import AccountingCustomer, AudienceContract, Catalog
from starlette.responses import Response

from soundmark.console.pages.platform.catalog import PATH, refuse_taken
from soundmark.console.pages.platform.organizations import list_newest, read_organization
from soundmark.console.troubles import TenantUnknown
from soundmark.console.visit import Visit


async def show_contract(visit: Visit) -> Response:
    """Show the form of a contract: of a new one, or of the one that the URL names."""
    catalog, organizations = await asyncio.gather(visit.core.catalog.get(), list_newest(visit))
    plans = [(each.plan_id, f"{each.name} ({each.plan_id})") for each in catalog.plans if each.product == "audience"]
    return visit.page(
        "platform/contract.html", contract=_find_contract(visit, catalog), plans=plans, organizations=organizations
    )


async def put_contract(visit: Visit) -> Response:
    """Give an organisation a contract, or cancel one."""
    form = visit.form
    organization_id, reference = await read_organization(visit), form.text("contract_reference")
    await refuse_taken(
        visit,
        "contract_reference",
        reference,
        lambda found: [
            each.contract_reference for each in found.audience_contracts if each.organization_id == organization_id
        ],
    )
    await visit.core.catalog.put_audience_contract(
        organization_id,
        plan_id=form.text("plan_id"),
        contract_reference=reference,
        # Core refuses what is no status.
        status=cast("Literal['active', 'cancelled']", form.text("status")),
        period_end=form.instant("period_end"),
    )
    return visit.redirect(PATH, "platform.saved", id=reference)


async def show_customer(visit: Visit) -> Response:
    """Show the form of an accounting customer: of a new one, or of the one that the URL names."""
    customer: AccountingCustomer | None = None
    catalog, organizations = await asyncio.gather(visit.core.catalog.get(), list_newest(visit))
    if organization_id := visit.query("organization_id"):
        customers = catalog.accounting_customers
        customer = next((each for each in customers if each.organization_id == organization_id), None)
        if customer is None:
            raise TenantUnknown
    return visit.page("platform/customer.html", customer=customer, organizations=organizations)


async def put_customer(visit: Visit) -> Response:
    """Name the third party that an organisation's invoices go to."""
    organization_id = await read_organization(visit)
    thirdparty_id = visit.form.integer("thirdparty_id")
    await refuse_taken(
        visit,
        "organization_id",
        organization_id,
        lambda found: [each.organization_id for each in found.accounting_customers],
    )
    await visit.core.catalog.put_accounting_customer(organization_id, thirdparty_id=thirdparty_id)
    return visit.redirect(PATH, "platform.customer_saved")


def _find_contract(visit: Visit, catalog: Catalog) -> AudienceContract | None:
    named = (visit.query("organization_id"), visit.query("contract_reference"))
    if named == (None, None):
        return None
    for contract in catalog.audience_contracts:
        if (contract.organization_id, contract.contract_reference) == named:
            return contract
    raise TenantUnknown
