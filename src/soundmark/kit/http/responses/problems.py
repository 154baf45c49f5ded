"""Problems: errors that a caller can understand. One class for each code, raised by code that knows nothing of HTTP.

The edge (`kit.http`) renders a problem as an RFC 9457 document. Problems that every component can raise are here, the
others in the component's own `problems` module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final, Literal

Location = Literal["body", "query", "path", "header"]
ERRORS_MAX: Final = 20  # Contract, section 1: a response does not grow with the number of faults.


class Kind(IntEnum):
    """The category of a problem. The value is the HTTP status of its response."""

    MALFORMED = 400
    UNAUTHENTICATED = 401
    FORBIDDEN = 403
    MISSING = 404
    WRONG_METHOD = 405
    NOT_ACCEPTABLE = 406
    CONFLICT = 409
    GONE = 410
    TOO_LARGE = 413
    WRONG_TYPE = 415
    INVALID = 422
    LIMITED = 429
    FAULT = 500
    UNAVAILABLE = 503


@dataclass(frozen=True, slots=True)
class FieldError:
    """One rejected member or parameter: where it is, and what it must be."""

    location: Location
    pointer: str
    message: str


class Problem(Exception):
    """A failure that the caller caused or needs to know about.

    `detail` reaches the caller unchanged, so it never holds a secret, a token or another tenant's data. Only the first
    `ERRORS_MAX` of `errors` are kept.
    """

    kind: ClassVar[Kind]
    code: ClassVar[str]
    title: ClassVar[str]

    def __init__(
        self,
        detail: str | None = None,
        *,
        errors: tuple[FieldError, ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail or self.title
        self.errors = errors[:ERRORS_MAX]
        self.headers = dict(headers or {})


class DatabaseUnavailable(Problem):
    """The database could not be reached or did not answer in time. Nothing was changed."""

    kind, code, title = Kind.UNAVAILABLE, "database_unavailable", "The database is unavailable; try again later."


class InternalError(Problem):
    """An error in the server. The log has the details under the request id; the caller learns nothing more."""

    kind, code, title = Kind.FAULT, "internal_error", "Internal error; quote the request id when you report it."


class MalformedBody(Problem):
    """The body is not I-JSON (RFC 7493)."""

    kind, code, title = Kind.MALFORMED, "malformed_json", "The body is not well-formed JSON."


class MethodNotAllowed(Problem):
    """The path exists, but not for this method."""

    kind, code, title = Kind.WRONG_METHOD, "method_not_allowed", "This path does not support this method."


class NotAcceptable(Problem):
    """The resource is not available in any media type that the caller accepts."""

    kind, code, title = Kind.NOT_ACCEPTABLE, "not_acceptable", "None of the media types in Accept is available."


class NotFound(Problem):
    """The path does not exist."""

    kind, code, title = Kind.MISSING, "not_found", "This path does not exist."


class PayloadTooLarge(Problem):
    """The body exceeds the size limit of the route."""

    kind, code, title = Kind.TOO_LARGE, "payload_too_large", "The body is too large."


class RateLimited(Problem):
    """One client IP address sent too many requests in the time window, or too much work of this kind is in progress."""

    kind, code, title = Kind.LIMITED, "rate_limited", "Too many requests; try again later."


class Unauthenticated(Problem):
    """The credential is missing, unknown, malformed, expired or revoked. The response is the same for all of these."""

    kind, code, title = Kind.UNAUTHENTICATED, "unauthenticated", "A valid credential is required."

    def __init__(self) -> None:
        super().__init__(headers={"www-authenticate": "Bearer"})


class UnsupportedMediaType(Problem):
    """The route expects JSON, but the request declares another media type."""

    kind, code, title = Kind.WRONG_TYPE, "unsupported_media_type", "The body must be application/json."


class ValidationFailed(Problem):
    """A member or parameter is missing, unknown or invalid. `errors` names each of them."""

    kind, code, title = Kind.INVALID, "validation_failed", "The request is invalid."
