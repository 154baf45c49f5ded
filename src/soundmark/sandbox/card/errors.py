"""Errors in the card provider's words and shape."""

from typing import Any, Final

from starlette.responses import JSONResponse, Response

_DOCS: Final = "https://stripe.com/docs/error-codes/"


class CardError(Exception):
    """A refused request."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        error_type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status: Final = status
        # The named object is gone, which a client cannot know.
        self.is_careless: Final = status == 401 or (param is not None and code != "resource_missing")  # noqa: PLR2004 - HTTP's own number
        self._error: Final[dict[str, Any]] = {"message": message, "type": error_type}
        if code is not None:
            self._error.update(code=code, doc_url=_DOCS + code.replace("_", "-"))
        if param is not None:
            self._error["param"] = param

    def respond(self) -> Response:
        """Return the response."""
        return JSONResponse({"error": self._error}, self.status)


def no_such(kind: str, value: str, *, param: str, status: int = 400) -> CardError:
    """Return the error for an id that names nothing: 400 in a parameter, 404 in the path."""
    return CardError(status, f"No such {kind}: '{value}'", code="resource_missing", param=param)


def missing_param(param: str) -> CardError:
    """Return the error for a parameter that is required."""
    return CardError(400, f"Missing required param: {param}.", code="parameter_missing", param=param)


def invalid_param(param: str, message: str) -> CardError:
    """Return the error for a value that is not allowed."""
    return CardError(400, message, param=param)


def make_error(status: int) -> Response:
    """Return what is answered when a switch demands an error."""
    if status == 429:  # noqa: PLR2004 - HTTP's own number
        message = "Request rate limit exceeded. You can learn more about rate limits in the documentation."
        return CardError(status, message, code="rate_limit").respond()
    return CardError(status, "An unknown error occurred.", error_type="api_error").respond()
