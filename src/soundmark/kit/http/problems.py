"""What a caller is told went wrong: one class for each code, raised without a word of HTTP.

The edge (`kit.http`) turns a problem into RFC 9457. Problems that every component can have stand here; the others
stand in the component's own `problems` module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final, Literal, Self

Location = Literal["body", "query", "path", "header"]
ERRORS_MAX: Final = 20  # Contract, section 1: an answer does not grow with the number of faults.


class Kind(IntEnum):
    """What sort of failure a problem is; its value is the status that the edge answers."""

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
    """One refused member or parameter: where it stands, and what it must be."""

    location: Location
    pointer: str
    message: str


class Problem(Exception):  # noqa: N818 - the tree is named for what it describes
    """A failure that a caller caused or has to know of.

    `detail` never holds a secret, a token or another tenant's data: it reaches the caller as it is. Of `errors` the
    first `ERRORS_MAX` are kept.
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

    def anew(self) -> Self:
        """The same problem for somebody else: an exception keeps every frame that it passes, and what stands in it."""
        again = type(self).__new__(type(self), *self.args)
        again.__dict__.update(self.__dict__)
        return again


class DatabaseUnavailable(Problem):
    """The database cannot be reached or did not answer in time; nothing was changed."""

    kind, code, title = Kind.UNAVAILABLE, "database_unavailable", "The database cannot be reached right now."


class InternalError(Problem):
    """A mistake of ours. The log names it under the request id; the caller learns nothing more."""

    kind, code, title = Kind.FAULT, "internal_error", "Something went wrong here; the request id names it in our log."


class MalformedBody(Problem):
    """The body is no I-JSON (RFC 7493)."""

    kind, code, title = Kind.MALFORMED, "malformed_json", "The body is not well-formed JSON."


class MethodNotAllowed(Problem):
    """The path exists, the method on it does not."""

    kind, code, title = Kind.WRONG_METHOD, "method_not_allowed", "This method is not allowed here."


class NotAcceptable(Problem):
    """No representation that the caller accepts exists."""

    kind, code, title = Kind.NOT_ACCEPTABLE, "not_acceptable", "Nothing that you accept can be answered here."


class NotFound(Problem):
    """No such path."""

    kind, code, title = Kind.MISSING, "not_found", "There is nothing here."


class PayloadTooLarge(Problem):
    """The body exceeds the limit of the route."""

    kind, code, title = Kind.TOO_LARGE, "payload_too_large", "The body is too large."


class RateLimited(Problem):
    """Too many requests from one address in the window."""

    kind, code, title = Kind.LIMITED, "rate_limited", "Too many requests; try again later."


class Unauthenticated(Problem):
    """No, unknown, malformed, expired or revoked credential: all alike."""

    kind, code, title = Kind.UNAUTHENTICATED, "unauthenticated", "A valid credential is required."

    def __init__(self) -> None:
        super().__init__(headers={"www-authenticate": "Bearer"})


class UnsupportedMediaType(Problem):
    """JSON is expected and the body says to be something else."""

    kind, code, title = Kind.WRONG_TYPE, "unsupported_media_type", "The body must be application/json."


class ValidationFailed(Problem):
    """A member or parameter is missing, unknown, or not what it must be; `errors` names each."""

    kind, code, title = Kind.INVALID, "validation_failed", "The request does not have the required shape."
