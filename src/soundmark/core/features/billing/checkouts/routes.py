"""The routes of checkouts."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Path
from starlette.requests import Request
from starlette.responses import Response

from soundmark.core.domain.codes.receipt import KeyedRequest
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.edge.idempotency_keys import OptionalKey, read_keyed_request
from soundmark.core.edge.operations import Operation, Operations, Refusal
from soundmark.core.edge.parameters import Ctx, ResourceId, Tenant
from soundmark.core.features.billing.checkouts import example, service
from soundmark.core.features.billing.checkouts.wire import (
    CheckoutView,
    CreateCheckout,
    CreatedCheckoutView,
    checkout_view,
)
from soundmark.core.problems import (
    CheckoutNotFound,
    IdempotencyConflict,
    OfferNotFound,
    PaymentProviderUnavailable,
    ResourceDeletionInProgress,
    SubscriptionActive,
)
from soundmark.kit.http.responses.problems import RateLimited

operations = Operations("Billing")

CheckoutIdPath = Annotated[ResourceId, Path(description="The checkout's id.", examples=["bco_Y2hlY2tvdXQtb2YtZXhhbQ"])]


async def _keyed(request: Request, key: OptionalKey = None) -> KeyedRequest | None:  # noqa: ARG001 - published here
    return read_keyed_request(request, "checkout")


async def _judge_refused(request: Request, _: Refusal) -> None:
    """Judge the idempotency key of a malformed request, which takes precedence."""
    scope: TenantScope | None = getattr(request.state, "scope", None)
    if scope is None:
        return
    keyed = read_keyed_request(request, "checkout")
    if keyed is not None:
        await service.find_answered(request.app.state.context, scope, keyed)


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
            RateLimited,
            PaymentProviderUnavailable,
        ),
        judge_refused=_judge_refused,
    ),
    status=HTTPStatus.CREATED,
    response_model=CreatedCheckoutView,
    example=example.CREATED,
)
async def create_checkout(
    ctx: Ctx, scope: Tenant, body: CreateCheckout, keyed: Annotated[KeyedRequest | None, Depends(_keyed)]
) -> Response:
    """Buy an offer on a page of its payment provider. The checkout stays pending until the provider has been paid."""
    answer = await service.create_checkout(ctx, scope, body.offer_id, keyed)
    return Response(answer, status_code=HTTPStatus.CREATED, media_type="application/json")


@operations.add(
    "GET",
    "/v1/billing/checkouts/{checkout_id}",
    Operation("checkout.read", problems=(CheckoutNotFound,)),
    example=example.COMPLETED,
)
async def get_checkout(ctx: Ctx, scope: Tenant, checkout_id: CheckoutIdPath) -> CheckoutView:
    """Return a checkout, for the page on which somebody waits for it."""
    return checkout_view(await service.get_checkout(ctx, scope, checkout_id), ctx.clock.now())
