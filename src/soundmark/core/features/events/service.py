"""Handing events on to Audience."""

from collections.abc import Mapping, Sequence
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
    ERRORS_MAX,
    FieldError,
    Location,
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
_SUCCESSES: Final = {HTTPStatus.CREATED: "recorded", HTTPStatus.OK: "duplicate"}


async def hand_on(
    ctx: Context, body: bytes, headers: Mapping[str, str], *, unknown_parameters: Sequence[str], request_id: str
) -> tuple[HTTPStatus, EventAnswer]:
    """Return what Audience answers to an event, whose bytes and signature it gets as they came.

    `unknown_parameters` are the names in its query string, which Audience refuses once it has judged the signature.

    Raises: what Audience declares for an event; AudienceUnavailable for every other answer, and for none.
    Source: contract, section 6.
    """
    answer = await ctx.audience.forward_event(
        body, headers, unknown_parameters=unknown_parameters, request_id=request_id
    )
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
    """Return what was refused; Audience names members and parameters and never repeats what stood there."""
    errors = []
    for error in found[:ERRORS_MAX] if isinstance(found, list) else []:
        match error:
            case {"pointer": str(pointer), "message": str(message)}:
                location: Location = "query" if error.get("location") == "query" else "body"
                errors.append(FieldError(location, pointer, message))
            case _:
                continue
    return errors
