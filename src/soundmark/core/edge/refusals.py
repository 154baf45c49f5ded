"""Validation errors that no model can express."""

from fastapi.exceptions import RequestValidationError

from soundmark.core.problems import IntentNotCanonical
from soundmark.kit.http.requests.strict_json import Unrepresentable
from soundmark.kit.http.responses.problem_documents import pointer_to
from soundmark.kit.http.responses.problems import FieldError, Problem


def invalid(location: str, name: str, message: str) -> RequestValidationError:
    """Return a validation error for one named member or parameter."""
    return RequestValidationError([{"loc": (location, name), "msg": message, "type": "value_error", "input": None}])


def refine_problem(error: RequestValidationError) -> Problem | None:
    """Return `intent_not_canonical` if the error is a number inside the intent that a double cannot hold, else None."""
    for each in error.errors():
        if tuple(each["loc"][:2]) == ("body", "intent") and isinstance(each.get("input"), Unrepresentable):
            fault = FieldError("body", pointer_to(each["loc"][1:]), "must be a number that a double can hold exactly")
            return IntentNotCanonical(
                "The intent contains a number that a double cannot hold exactly.", errors=(fault,)
            )
    return None
