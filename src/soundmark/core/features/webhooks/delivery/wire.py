"""Shapes of testing an endpoint."""

from typing import Annotated

from pydantic import ConfigDict, Field

from soundmark.wire.shape import Wire


class WebhookTestView(Wire):
    """What came back from an endpoint. Exactly one of `status_code` and `error` is null, or none if it is not 2xx."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"status_code": 503, "duration_ms": 87, "error": "status_not_successful"}]}
    )

    status_code: Annotated[int | None, Field(description="The status of the response; null if there was none.")]
    duration_ms: Annotated[int, Field(ge=0, description="How long the response, or giving up, took.")]
    error: Annotated[
        str | None,
        Field(
            description="Why this is no success: `url_refused`, `name_not_resolved`, `address_refused`, "
            "`connection_failed`, `tls_failed`, `connection_lost`, `invalid_response`, `timeout`, "
            "`status_not_successful` or `internal_error`; null if the endpoint took the message."
        ),
    ]
