"""The header `Idempotency-Key`, which is judged before the rest of a request."""

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Header
from pydantic import TypeAdapter, ValidationError, WithJsonSchema
from starlette.requests import Request

from soundmark.core.domain.codes.receipt import KEY_PATTERN, KeyedRequest, KeyRoute, make_keyed_request
from soundmark.core.edge.refusals import invalid
from soundmark.core.steps.idempotency import find_answer
from soundmark.kit.text.ids import parse_id

KEY_HEADER: Final = "Idempotency-Key"
KEY_OF_DRY_RUN: Final = "must be absent in a dry run"

_BOOLEAN: Final = TypeAdapter(bool)
# Published, not judged here: a malformed key is refused after an unknown organisation or project.
_KeyText = Annotated[str, WithJsonSchema({"type": "string", "pattern": KEY_PATTERN})]
_OptionalKey = Annotated[
    _KeyText | None,
    Header(
        alias=KEY_HEADER,
        description="Makes the request safe to retry: for 24 hours, a retry returns the first response.",
    ),
]
_RequiredKey = Annotated[_KeyText, Header(alias=KEY_HEADER, description="The idempotency key of the issuance.")]


@dataclass(frozen=True, slots=True)
class KeyRule:
    """How an operation takes idempotency keys. A key belongs to one `route`."""

    route: KeyRoute
    is_required: bool = False


async def _read_optional(request: Request, key: _OptionalKey = None) -> KeyedRequest | None:  # noqa: ARG001 - published
    return read_keyed_request(request)


async def _read_required(request: Request, key: _RequiredKey) -> KeyedRequest | None:  # noqa: ARG001 - published here
    return read_keyed_request(request)


# The request with its idempotency key; None if it has none.
OptionallyKeyed = Annotated[KeyedRequest | None, Depends(_read_optional)]
Keyed = Annotated[KeyedRequest, Depends(_read_required)]


async def judge_key(request: Request) -> None:
    """Judge the project and the idempotency key of a malformed request, which take precedence over its other faults.

    A well-formed request is judged in the same order, in the transaction that carries it out.

    Raises: ProjectNotFound; RequestValidationError and ValidationFailed for the header; IdempotencyConflict.
    """
    route: Any = request.scope["route"]
    ctx, scope = request.app.state.context, request.state.scope
    named = request.state.json.get("project_id") if "project_id" in route.member_names else None
    project_id = parse_id(named) if isinstance(named, str) else None
    await find_answer(ctx, scope, project_id, None)
    keyed = read_keyed_request(request)
    if keyed is None and route.operation.key.is_required:
        raise invalid("header", KEY_HEADER, "Field required")
    if keyed is not None:
        if is_dry_run(request):
            raise invalid("header", KEY_HEADER, KEY_OF_DRY_RUN)
        await find_answer(ctx, scope, project_id, keyed)


def is_dry_run(request: Request) -> bool:
    """Return whether a request, which may be malformed, asks for a dry run."""
    if "dry_run" not in request.scope["route"].query_names:
        return False
    try:
        return _BOOLEAN.validate_python(request.query_params.get("dry_run", False))
    except ValidationError:
        return False


def read_keyed_request(request: Request) -> KeyedRequest | None:
    """Return the request with its idempotency key, by the rule of its route; None if it has none.

    Raises: RequestValidationError.
    """
    keys = request.headers.getlist(KEY_HEADER)
    if len(keys) > 1:
        raise invalid("header", KEY_HEADER, "must be given once")
    rule: KeyRule = request.scope["route"].operation.key
    return make_keyed_request(keys[0], rule.route, request.state.json) if keys else None
