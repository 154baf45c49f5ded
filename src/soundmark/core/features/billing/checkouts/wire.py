"""The request and response shapes of checkouts."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field

from soundmark.core.domain.billing.checkout import Checkout, CheckoutPage, CheckoutStatus
from soundmark.core.edge.ids import UnboundedId
from soundmark.wire.shape import Timestamp, Wire


class CreateCheckout(Wire):
    """The purchase of an offer."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"offer_id": "offer_codes_monthly"}]})

    offer_id: Annotated[UnboundedId, Field(description="The id of an offer that is for sale.")]


class CheckoutView(Wire):
    """A checkout, without data of the provider or the payment."""

    id: str
    status: CheckoutStatus
    offer_id: str
    created_at: Timestamp
    expires_at: Annotated[Timestamp, Field(description="When a checkout that is still pending expires.")]


class CreatedCheckoutView(CheckoutView):
    """A new checkout with its payment page."""

    checkout_url: Annotated[str, Field(description="The provider's payment page. Redirect the customer to it.")]


class CheckoutList(Wire):
    """All pending checkouts of an organisation."""

    data: list[CheckoutView]


def checkout_view(checkout: Checkout, now: datetime) -> CheckoutView:
    """Return the view of a checkout, with its status at `now`."""
    return CheckoutView.from_record(checkout, status=checkout.status_at(now))


def checkout_list(checkouts: Iterable[Checkout], now: datetime) -> CheckoutList:
    """Return the view of checkouts, with their status at `now`."""
    return CheckoutList(data=[checkout_view(each, now) for each in checkouts])


def render_created(checkout: Checkout, page: CheckoutPage, now: datetime) -> bytes:
    """Return the response to the creation of a checkout, which a repeated request gets again."""
    view = CreatedCheckoutView.from_record(checkout, status=checkout.status_at(now), checkout_url=page.url)
    return view.model_dump_json().encode()
