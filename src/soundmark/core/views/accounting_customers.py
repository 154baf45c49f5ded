"""The public view of the organisations that the accounting system knows."""

from soundmark.wire.shape import Timestamp, Wire


class AccountingCustomerView(Wire):
    """An organisation, and the third party in the accounting system that its invoices go to."""

    organization_id: str
    organization_name: str
    thirdparty_id: int
    updated_at: Timestamp
