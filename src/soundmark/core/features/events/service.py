"""Handing events on to Audience."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from pydantic import ValidationError

from soundmark.core.context import Context
from soundmark.core.problems import (
    AudienceUnavailable,
    EntitlementRequired,
    EventConflict,
    EventQuotaExceeded,
    IntegrationRevoked,
    ProofInvalid,
    ProofReplayed,
)
from soundmark.kit.private_call import PrivateAnswer, PrivateCallFailed
from soundmark.kit.problems import (
    FieldError,
    MalformedBody,
    PayloadTooLarge,
    Problem,
    Unauthenticated,
    UnsupportedMediaType,
    ValidationFailed,
)
from soundmark.wire.audience_event import EventAnswer

_DECLARED: Final[Mapping[str, type[Problem]]] = {
    problem.code: problem
    for problem in (
        EntitlementRequired,
        EventConflict,
        EventQuotaExceeded,
        IntegrationRevoked,
        MalformedBody,
        PayloadTooLarge,
        ProofInvalid,
        ProofReplayed,
        UnsupportedMediaType,
        ValidationFailed,
    )
}
_ERRORS_MAX: Final = 100
_SUCCESSES: Final = {HTTPStatus.CREATED: "recorded", HTTPStatus.OK: "duplicate"}


async def hand_on(
    ctx: Context, body: bytes, headers: Mapping[str, str], *, request_id: str
) -> tuple[HTTPStatus, EventAnswer]:
    """What Audience answers to an event, whose bytes and signature it gets as they came.

    Raises: what Audience declares for an event; AudienceUnavailable for every other answer, and for none.
    Source: contract, section 6.
    """
    answer = await ctx.audience.forward_event(body, headers, request_id=request_id)
    try:
        said = answer.json_object()
    except PrivateCallFailed:
        raise AudienceUnavailable from None
    for status, word in _SUCCESSES.items():
        if answer.status == status:
            return status, _recorded(said, word)
    raise _declared(answer, said)


def _recorded(said: dict[str, Any], word: str) -> EventAnswer:
    try:
        recorded = EventAnswer.model_validate(said)
    except ValidationError:
        raise AudienceUnavailable from None
    if recorded.status != word:
        raise AudienceUnavailable
    return recorded


def _declared(answer: PrivateAnswer, said: dict[str, Any]) -> Problem:
    """The same problem in Core's words."""
    code = said.get("code")
    if code == Unauthenticated.code and answer.status == int(Unauthenticated.kind):
        return Unauthenticated()
    problem = _DECLARED.get(code) if isinstance(code, str) else None
    if problem is None or answer.status != int(problem.kind):
        return AudienceUnavailable()
    retry_after = answer.retry_after or ""
    headers = {"retry-after": retry_after} if retry_after.isdecimal() else {}
    errors = tuple(_errors(said.get("errors"))) if problem is ValidationFailed else ()
    return problem(errors=errors, headers=headers)


def _errors(found: Any) -> list[FieldError]:
    """What was refused in the body; Audience names members and never repeats what stood there."""
    listed = found[:_ERRORS_MAX] if isinstance(found, list) else []
    errors = []
    for error in listed:
        pointer, message = (error.get(name) if isinstance(error, dict) else None for name in ("pointer", "message"))
        if isinstance(pointer, str) and isinstance(message, str):
            errors.append(FieldError("body", pointer, message))
    return errors
