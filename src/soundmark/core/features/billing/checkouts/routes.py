"""The routes of checkouts."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from soundmark.core.edge.idempotency_keys import KeyRule, OptionallyKeyed
from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.features.billing.checkouts import cancellation, example, service
from soundmark.core.features.billing.checkouts.wire import (
    CheckoutList,
    CheckoutView,
    CreateCheckout,
    CreatedCheckoutView,
    checkout_list,
    checkout_view,
)
from soundmark.core.problems import (
    CheckoutNotCancellable,
    CheckoutNotFound,
    IdempotencyConflict,
    OfferNotFound,
    PaymentNotVerified,
    PaymentProviderUnavailable,
    ResourceDeletionInProgress,
    SubscriptionActive,
)
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.wire.private.problems import OrganizationSuspended

operations = Operations("Billing")

CheckoutIdPath = Annotated[ResourceId, Path(description="The checkout's id.", examples=["bco_Y2hlY2tvdXQtb2YtZXhhbQ"])]


@operations.add(
    "POST",
    "/v1/billing/checkouts",
    Operation(
        "checkout.create",
        problems=(
            IdempotencyConflict,
            OfferNotFound,
            SubscriptionActive,
            ResourceDeletionInProgress,
            OrganizationSuspended,
            RateLimited,
            PaymentProviderUnavailable,
        ),
        key=KeyRule("checkout"),
    ),
    status=HTTPStatus.CREATED,
    response_model=CreatedCheckoutView,
    example=example.CREATED,
)
async def create_checkout(ctx: Ctx, scope: Tenant, body: CreateCheckout, keyed: OptionallyKeyed) -> Response:
    """Start the purchase of an offer. The checkout is pending until it is paid on the provider's page."""
    answer = await service.create_checkout(ctx, scope, body.offer_id, keyed)
    return Response(answer, status_code=HTTPStatus.CREATED, media_type="application/json")


@operations.add(
    "GET",
    "/v1/billing/checkouts",
    Operation("checkout.read"),
    example=example.PENDING,
)
async def list_checkouts(ctx: Ctx, scope: Tenant) -> CheckoutList:
    """List the pending checkouts of an organisation, oldest first.

    There are at most ten. Those that have ended are not listed.
    """
    return checkout_list(await service.list_pending(ctx, scope), ctx.clock.now())


@operations.add(
    "GET",
    "/v1/billing/checkouts/{checkout_id}",
    Operation("checkout.read", problems=(CheckoutNotFound,)),
    example=example.COMPLETED,
)
async def get_checkout(ctx: Ctx, scope: Tenant, checkout_id: CheckoutIdPath) -> CheckoutView:
    """Return a checkout with its current status."""
    return checkout_view(await service.get_checkout(ctx, scope, checkout_id), ctx.clock.now())


@operations.add(
    "POST",
    "/v1/billing/checkouts/{checkout_id}/cancel",
    Operation(
        "checkout.cancel",
        problems=(
            CheckoutNotFound,
            CheckoutNotCancellable,
            PaymentNotVerified,
            RateLimited,
            PaymentProviderUnavailable,
        ),
    ),
    example=example.EXPIRED,
)
async def cancel_checkout(ctx: Ctx, scope: Tenant, checkout_id: CheckoutIdPath) -> CheckoutView:
    """Give up a pending checkout: the card provider closes its page, and the checkout is `expired`.

    A checkout that has ended, or that was paid in the meantime, is returned as it is. The local provider closes no
    page, so its checkout is given up only once the provider says that the payment has failed or expired.
    """
    return checkout_view(await cancellation.cancel_checkout(ctx, scope, checkout_id), ctx.clock.now())
