"""The header `Idempotency-Key`."""

from typing import Annotated, Final

from fastapi import Header
from pydantic import WithJsonSchema
from starlette.requests import Request

from soundmark.core.domain.codes.receipt import KEY_PATTERN, KeyedRequest, KeyRoute, make_keyed_request
from soundmark.core.edge.refusals import invalid

KEY_HEADER: Final = "Idempotency-Key"

# Published, not judged here: a malformed key is refused after an unknown organisation or project.
_KeyText = Annotated[str, WithJsonSchema({"type": "string", "pattern": KEY_PATTERN})]
OptionalKey = Annotated[
    _KeyText | None,
    Header(
        alias=KEY_HEADER,
        description="Makes the request safe to repeat: for 24 hours a repeat returns the first response.",
    ),
]
RequiredKey = Annotated[_KeyText, Header(alias=KEY_HEADER, description="The key that the issuance was sent with.")]


def read_keyed_request(request: Request, route: KeyRoute) -> KeyedRequest | None:
    """Return the request with its idempotency key; None if it has none."""
    keys = request.headers.getlist(KEY_HEADER)
    if len(keys) > 1:
        raise invalid("header", KEY_HEADER, "must be given once")
    return make_keyed_request(keys[0], route, request.state.json) if keys else None
