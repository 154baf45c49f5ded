"""Problem documents (RFC 9457), and the errors that they list."""

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pydantic import ValidationError
from starlette.responses import Response

from soundmark.kit.http.responses.problems import ERRORS_MAX, FieldError, Location, Problem

PROBLEM_TYPE: Final = "application/problem+json"
_NAME_CHARS_MAX: Final = 160  # The longest member name of ours has 32.
_LOCATIONS: Final[dict[str, Location]] = {"body": "body", "query": "query", "path": "path", "header": "header"}


def problem_document(problem: Problem, *, base_url: str, request_id: str) -> bytes:
    """Return the RFC 9457 document of one problem."""
    document: dict[str, Any] = {
        "type": f"{base_url}/problems/{problem.code}",
        "title": problem.title,
        "status": int(problem.kind),
        "detail": problem.detail,
        "code": problem.code,
        "request_id": request_id,
    }
    if problem.errors:
        document["errors"] = [
            {"location": error.location, "pointer": error.pointer, "message": error.message} for error in problem.errors
        ]
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def problem_response(problem: Problem, base_url: str, identity: str) -> Response:
    """Return the response of one problem, with its headers."""
    return Response(
        problem_document(problem, base_url=base_url, request_id=identity),
        status_code=int(problem.kind),
        media_type=PROBLEM_TYPE,
        headers=problem.headers,
    )


def body_errors(error: ValidationError) -> tuple[FieldError, ...]:
    """Return the first errors of a model about a body that was validated without the framework."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    return tuple(_field_error({**fault, "loc": ("body", *fault["loc"])}) for fault in faults[:ERRORS_MAX])


def field_errors(faults: Sequence[dict[str, Any]]) -> tuple[FieldError, ...]:
    """Return the first errors of the framework about a request."""
    return tuple(_field_error(fault) for fault in faults[:ERRORS_MAX])


def _field_error(error: dict[str, Any]) -> FieldError:
    where, *rest = error["loc"]
    message = error["msg"].removeprefix("Value error, ")
    return FieldError(_LOCATIONS.get(str(where), "body"), pointer_to(rest), message)


def pointer_to(steps: Iterable[int | str]) -> str:
    """Return the JSON pointer (RFC 6901) of these member names and indexes.

    It ends before a name that is longer than any member of ours, so that a response does not grow with the request.
    """
    near = itertools.takewhile(lambda step: len(str(step)) <= _NAME_CHARS_MAX, steps)
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in near)
