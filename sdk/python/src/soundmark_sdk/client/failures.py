"""How a call to the service can fail: refused, not answered, or answered with what is no answer."""

from dataclasses import dataclass
from typing import Final, Literal

from soundmark_sdk.client.recovery import RememberedIssuance


@dataclass(frozen=True, slots=True)
class RefusedField:
    """One member or parameter that the service refused. `location` is body, query, path or header."""

    location: str
    pointer: str
    message: str


class ClientFailure(Exception):  # noqa: N818 - the wire documents call these outcomes failures, and so do callers
    """A call did not get its answer.

    `unsettled` is set where an issuance failed and nobody can tell whether it took place: the client remembers it, and
    the same call again, or `codes.resume`, finishes it without issuing twice.
    """

    unsettled: RememberedIssuance | None = None


class ApiProblem(ClientFailure):
    """The service refused, or cannot at present; `code` says why, in the words of the wire contract.

    `detail` and `errors` are the service's sentences for a developer, without the credential should it stand in them.
    An answer that is no problem document (a proxy's page, say) has the code `unknown`. `retry_after_s` is how long the
    service asked to be left alone (seconds from when it answered), or None when it did not say.

    Source: wire contract, section 1, "Errors".
    """

    def __init__(  # noqa: PLR0913 - each is a part of the answer
        self,
        status: int,
        code: str,
        detail: str,
        *,
        errors: tuple[RefusedField, ...] = (),
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        refused = "".join(f"; {error.location} {error.pointer}: {error.message}" for error in errors)
        super().__init__(f"{code} ({status}): {detail.removesuffix('.') if refused else detail}{refused}")
        self.status: Final = status
        self.code: Final = code
        self.detail: Final = detail
        self.errors: Final = errors
        self.request_id: Final = request_id
        self.retry_after_s: Final = retry_after_s


class ServiceUnreachable(ClientFailure):
    """No complete answer came in time; `was_sent` is false where the service cannot have seen the request."""

    def __init__(self, explanation: str, *, was_sent: bool) -> None:
        super().__init__(explanation)
        self.was_sent: Final = was_sent


class AnswerMalformed(ClientFailure):
    """A whole answer came, and is not what the wire contract knows: a member is missing, it is too large, a redirect.

    The message never holds what was answered.
    """


class TenantNotGiven(ValueError):  # noqa: N818 - an outcome, like MicrophoneUnavailable
    """Neither the call nor the client says which organisation or project it is about, and the credential is no key."""

    def __init__(self, missing: Literal["organization_id", "project_id"]) -> None:
        what = "organisation" if missing == "organization_id" else "project"
        super().__init__(
            f"Say which {what}: this credential is no server key, so give {missing} to the call or client."
        )
        self.missing: Final = missing
