"""The route that tests an endpoint."""

from typing import Annotated

from fastapi import Path
from pydantic import ConfigDict, Field

from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.features.webhooks.delivery import service
from soundmark.core.problems import WebhookEndpointNotFound
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.wire.shape import Wire


class WebhookTestView(Wire):
    """The result of a test. `error` is null after a 2xx response; `status_code` is null without a response."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"status_code": 503, "duration_ms": 87, "error": "status_not_successful"}]}
    )

    status_code: Annotated[
        int | None, Field(description="The status code of the response; null if there was no response.")
    ]
    duration_ms: Annotated[int, Field(ge=0, description="The time until the response or the failure.")]
    error: Annotated[
        str | None,
        Field(
            description="Why the test failed: `url_refused`, `name_not_resolved`, `address_refused`, "
            "`connection_failed`, `tls_failed`, `connection_lost`, `invalid_response`, `timeout`, "
            "`status_not_successful` or `internal_error`; null if the endpoint accepted the message."
        ),
    ]


operations = Operations("Webhooks")

EndpointIdPath = Annotated[ResourceId, Path(description="The endpoint's id.", examples=["whe_cGxheW91dC1leGFtcGxlLV"])]


@operations.add(
    "POST",
    "/v1/webhook-endpoints/{endpoint_id}/test",
    Operation("webhook_endpoint.change", problems=(WebhookEndpointNotFound, RateLimited)),
    example=WebhookTestView(status_code=204, duration_ms=87, error=None),
)
async def test_webhook_endpoint(ctx: Ctx, scope: Tenant, endpoint_id: EndpointIdPath) -> WebhookTestView:
    """Send a message of the type `webhook.test` to an endpoint, even a disabled one, and return the result.

    The message is signed like any other. A test is not a delivery: it is not listed and not retried. An organisation
    can run one test at a time, and 30 a minute.
    """
    tested = await service.test_endpoint(ctx, scope, endpoint_id)
    return WebhookTestView(status_code=tested.status_code, duration_ms=tested.duration_ms, error=tested.error)
