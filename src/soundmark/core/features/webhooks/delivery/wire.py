"""Shapes of testing an endpoint."""

from typing import Annotated

from pydantic import ConfigDict, Field

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
