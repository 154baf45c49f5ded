"""The failures of a call to the service: refused, not answered, or answered against the contract."""

from dataclasses import dataclass
from typing import Final, Literal

from soundmark_sdk.client.recovery import RememberedIssuance
from soundmark_sdk.failures import Failure


@dataclass(frozen=True, slots=True)
class RefusedField:
    """A member or parameter that the service refused. `location` is body, query, path or header."""

    location: str
    pointer: str
    message: str


class ClientFailure(Failure):
    """A call that got no answer it could use.

    `unsettled` is set when an issuance failed and may or may not have taken place. The client remembers it; the same
    call again, or `codes.resume`, finishes it without issuing twice.
    """

    unsettled: RememberedIssuance | None = None


class ApiProblem(ClientFailure):
    """The service refused the call, or cannot perform it at the moment; `code` is one of the wire contract's.

    `detail` and `errors` are the service's sentences for a developer; a credential in them is removed. An answer
    without a problem document, such as the page of a proxy, has the code `unknown`. `retry_after_s` is the pause that
    the service asked for, in seconds from its answer, or None.

    Source: wire contract, section 1, "Errors".
    """

    def __init__(
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
        self.retry_after_s = retry_after_s


class ServiceUnreachable(ClientFailure):
    """No complete answer arrived in time; `was_sent` is false when the service cannot have seen the request."""

    def __init__(self, explanation: str, *, was_sent: bool) -> None:
        super().__init__(explanation)
        self.was_sent: Final = was_sent


class AnswerMalformed(ClientFailure):
    """A complete answer arrived that breaks the wire contract: a member is missing, it is too large, a redirect.

    The message never holds a part of the answer.
    """


class TenantNotGiven(ValueError):
    """The call needs an organisation or project, and neither the call, nor the client, nor an API key names it."""

    def __init__(self, missing: Literal["organization_id", "project_id"]) -> None:
        what = "organisation" if missing == "organization_id" else "project"
        super().__init__(
            f"This call needs {missing}. Pass it to the call or to the client; only an API key implies its {what}."
        )
        self.missing: Final = missing
