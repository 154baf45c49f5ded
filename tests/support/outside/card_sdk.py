"""The card provider's official SDK, unchanged, against the sandbox."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import stripe

from support.outside.running_sandbox import RunningSandbox

BASIL = "2025-03-31.basil"
METADATA = {"svc_checkout_id": "bco_1", "svc_organization_id": "org_1", "svc_offer_id": "offer_1"}

T = TypeVar("T")


def make_client(sandbox: RunningSandbox, *, key: str | None = None, retries: int = 0) -> stripe.StripeClient:
    return stripe.StripeClient(
        key or sandbox.secret("CARD_SECRET_KEY"),
        stripe_version=BASIL,
        base_addresses={"api": f"{sandbox.url}/card"},
        max_network_retries=retries,
        http_client=stripe.RequestsClient(timeout=10),
    )


async def call(function: Callable[..., T], *args: Any, **options: Any) -> T:
    """Call the blocking SDK while this loop serves."""
    return await asyncio.to_thread(function, *args, **options)


def session_params(**changes: Any) -> dict[str, Any]:
    params = {
        "mode": "subscription",
        "line_items": [{"price": "price_sandbox_monthly", "quantity": 1}],
        "client_reference_id": "bco_1",
        "metadata": METADATA,
        "subscription_data": {"metadata": METADATA},
        "success_url": "http://127.0.0.1:8080/billing/checkouts/bco_1?session={CHECKOUT_SESSION_ID}",
        "cancel_url": "http://127.0.0.1:8080/billing/checkouts/bco_1",
        "customer_email": "buyer@example.org",
    }
    return {name: value for name, value in {**params, **changes}.items() if value is not None}


async def create_session(sandbox: RunningSandbox, key: str | None = None, **changes: Any) -> Any:
    options = {} if key is None else {"idempotency_key": key}
    return await call(make_client(sandbox).v1.checkout.sessions.create, session_params(**changes), options)


async def read_subscription(sandbox: RunningSandbox, subscription_id: str) -> Any:
    params = {"expand": ["latest_invoice"]}
    return await call(make_client(sandbox).v1.subscriptions.retrieve, subscription_id, params)
