"""The route of the accounting system's customers."""

from typing import Annotated

from pydantic import ConfigDict, Field

from soundmark.core.domain.billing.catalog import AccountingCustomer
from soundmark.core.edge.examples import ISSUED_AT, ORGANIZATION
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import CallingUser, Ctx, OrganizationPath
from soundmark.core.edge.refusals import invalid
from soundmark.core.features.billing.accounting import service
from soundmark.core.problems import (
    AccountingUnavailable,
    OrganizationNotFound,
    ResourceDeletionInProgress,
    ThirdpartyConflict,
)
from soundmark.core.views.billing import AccountingCustomerView
from soundmark.kit.text.ids import parse_id
from soundmark.wire.shape import Wire

THIRDPARTY_ID_MAX = 2**31 - 1  # The accounting system keeps its ids in 32-bit columns.


class PutAccountingCustomer(Wire):
    """The third party that an organisation's invoices go to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"thirdparty_id": 17}]})

    thirdparty_id: Annotated[
        int,
        Field(
            ge=1,
            le=THIRDPARTY_ID_MAX,
            description="The third party's id in the accounting system, where it exists already.",
        ),
    ]


operations = Operations("Billing catalogue")


@operations.add(
    "PUT",
    "/v1/billing/admin/dolibarr/customers/{organization_id}",
    Operation(
        "billing.administer",
        tenant="none",
        problems=(OrganizationNotFound, ThirdpartyConflict, ResourceDeletionInProgress, AccountingUnavailable),
    ),
    example=AccountingCustomerView.from_record(
        AccountingCustomer(ORGANIZATION.id, ORGANIZATION.name, thirdparty_id=17, updated_at=ISSUED_AT)
    ),
)
async def put_accounting_customer(
    ctx: Ctx, user: CallingUser, organization_id: OrganizationPath, body: PutAccountingCustomer
) -> AccountingCustomerView:
    """Set the third party in the accounting system that an organisation's draft invoices go to.

    If the accounting system is configured, it must have the third party already (else 422), and be reachable.
    """
    try:
        customer = await service.put_customer(ctx, user, parse_id(organization_id), thirdparty_id=body.thirdparty_id)
    except service.UnknownThirdparty:
        raise invalid("body", "thirdparty_id", "must be a third party that the accounting system has") from None
    return AccountingCustomerView.from_record(customer)
