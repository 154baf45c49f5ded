"""The public view of the organisations that the accounting system knows."""

from soundmark.core.domain.billing.catalog import AccountingCustomer
from soundmark.wire.shape import Timestamp, Wire


class AccountingCustomerView(Wire):
    """An organisation, and the third party in the accounting system to which its invoices are addressed."""

    organization_id: str
    organization_name: str
    thirdparty_id: int
    updated_at: Timestamp


def accounting_customer_view(customer: AccountingCustomer) -> AccountingCustomerView:
    """Return the view of an organisation that the accounting system knows."""
    return AccountingCustomerView(
        organization_id=customer.organization_id,
        organization_name=customer.organization_name,
        thirdparty_id=customer.thirdparty_id,
        updated_at=customer.updated_at,
    )
