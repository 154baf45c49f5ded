"""What went wrong with a request, as a page says it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Final

from soundmark_sdk.client import ApiProblem, ClientFailure
from soundmark_sdk.client.failures import ServiceUnreachable

from soundmark.console.forms import FieldRefused, FormMalformed
from soundmark.console.language import Language
from soundmark.console.refused_fields import explain_fields
from soundmark.kit.http.responses.problems import PayloadTooLarge

_UNREADABLE: Final = "core_unreadable"
_NO_PROBLEM_DOCUMENT: Final = "unknown"  # The SDK's code for an answer that is none, such as a proxy's page.
_SHORT_PAUSE_S: Final = 120
_DOWNLOAD_PAUSE_S: Final = 30.0  # As Core asks for while it makes an archive.


class TenantUnknown(Exception):
    """The person is no member of the organisation in the URL, or it has no such project."""


class TooManyListed(Exception):
    """What was wanted may be in a list, further back than a page looks."""


class RoleRefused(Exception):
    """The person's role does not allow what the form of the page would do."""


class FormFromElsewhere(Exception):
    """The form was not sent by a page of the console."""


class FormOutdated(Exception):
    """The form was sent by a page of the console that was shown to an earlier session."""


class DownloadsBusy(Exception):
    """As many large downloads are under way as this process has room for."""


# The first that fits: an unreachable service is a failed call, too.
_OTHERS: Final[Mapping[type[Exception], tuple[int, str]]] = {
    ServiceUnreachable: (HTTPStatus.SERVICE_UNAVAILABLE, "core_unreachable"),
    ClientFailure: (HTTPStatus.SERVICE_UNAVAILABLE, _UNREADABLE),
    FormMalformed: (HTTPStatus.BAD_REQUEST, "form_malformed"),
    FormFromElsewhere: (HTTPStatus.FORBIDDEN, "form_from_elsewhere"),
    FormOutdated: (HTTPStatus.FORBIDDEN, "form_outdated"),
    PayloadTooLarge: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "payload_too_large"),
    RoleRefused: (HTTPStatus.FORBIDDEN, "forbidden"),
    TenantUnknown: (HTTPStatus.NOT_FOUND, "page_not_found"),
    TooManyListed: (HTTPStatus.NOT_FOUND, "too_many_listed"),
    DownloadsBusy: (HTTPStatus.SERVICE_UNAVAILABLE, "downloads_busy"),
}
REFUSALS: Final[tuple[type[Exception], ...]] = (FieldRefused, *_OTHERS)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A failure in the person's language.

    `code` is the problem's of the API, or one of ours. `detail` is Core's own English sentence, shown where we have no
    better one. `fields` are the messages for single fields, by their names.
    """

    status: int
    code: str
    title: str
    detail: str
    fields: Mapping[str, str] = field(default_factory=dict)
    retry_after_s: float | None = None
    request_id: str | None = None

    @property
    def is_long(self) -> bool:
        """Whether Core asks for a pause that a person does not sit out, such as the rest of a month."""
        return self.retry_after_s is not None and self.retry_after_s > _SHORT_PAUSE_S

    def ends_at(self, now: datetime) -> datetime:
        """Return the end of the pause that Core asks for, to the minute: clocks differ by seconds."""
        end = now + timedelta(seconds=(self.retry_after_s or 0) + 30)
        return end.replace(second=0, microsecond=0)


def describe(refused: Exception, language: Language) -> Trouble:
    """Return what one of `REFUSALS` means to a person."""
    if isinstance(refused, ApiProblem):
        return _describe_problem(refused, language)
    if isinstance(refused, FieldRefused):
        trouble = make_trouble(HTTPStatus.UNPROCESSABLE_ENTITY, "validation_failed", language)
        return replace(trouble, fields={refused.name: language.say(refused.message)})
    for kind, (status, code) in _OTHERS.items():
        if isinstance(refused, kind):
            pause_s = _DOWNLOAD_PAUSE_S if kind is DownloadsBusy else None
            return replace(make_trouble(status, code, language), retry_after_s=pause_s)
    raise AssertionError("the routes catch REFUSALS alone") from refused


def make_trouble(status: int, code: str, language: Language) -> Trouble:
    """Return a failure that is described by its code alone."""
    detail = f"problems.{code}.detail"
    return Trouble(status, code, _name(code, language), language.say(detail) if language.knows(detail) else "")


def _describe_problem(problem: ApiProblem, language: Language) -> Trouble:
    if problem.code == _NO_PROBLEM_DOCUMENT:
        trouble = make_trouble(problem.status, _UNREADABLE, language)
        return replace(trouble, retry_after_s=problem.retry_after_s, request_id=problem.request_id)
    return Trouble(
        status=problem.status,
        code=problem.code,
        title=_name(problem.code, language),
        detail=_explain(problem, language),
        fields=explain_fields(problem.errors, language),
        retry_after_s=problem.retry_after_s,
        request_id=problem.request_id,
    )


def _name(code: str, language: Language) -> str:
    key = f"problems.{code}"
    return language.say(key if language.knows(key) else "problems.unknown")


def _explain(problem: ApiProblem, language: Language) -> str:
    key = f"problems.{problem.code}.detail"
    return language.say(key) if language.knows(key) else problem.detail
