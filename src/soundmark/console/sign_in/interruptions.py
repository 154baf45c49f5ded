"""Pages that interrupt a visit because the person has to sign in, again or with a second factor.

What was typed is kept, and nothing is sent a second time unless the person presses the button again.
"""

import hashlib
from datetime import timedelta
from http import HTTPStatus
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from soundmark_sdk.client import ApiProblem
from starlette.responses import RedirectResponse, Response

from soundmark.console import gate
from soundmark.console.forms import Form
from soundmark.console.sign_in.identity_provider import ProviderUnavailable
from soundmark.console.sign_in.renewal import SessionEnded
from soundmark.console.troubles import make_trouble
from soundmark.console.visit import Visit

Reason: TypeAlias = Literal["not_signed_in", "signed_out", "refused", "second_factor_needed", "second_factor_unseen"]

_SIGN_IN: Final = "/sign-in"
_STEP_UP: Final = "/sign-in/step-up"
_ENDED: Final = "ended"
_ENDED_LIFETIME_S: Final = 60
# When Core still asks for a second factor so soon after one was used, to use it again would change nothing.
_UNSEEN_WITHIN: Final = timedelta(minutes=1)


async def enter(visit: Visit) -> Response | None:
    """Let a person in whose session is valid or can be renewed; return the page that anybody else sees."""
    if not gate.may_enter(visit):
        return _ask_to_sign_in(visit)
    sign_in = visit.console.sign_in
    if sign_in is None:
        return None
    try:
        visit.use_session(await sign_in.renewal.prepare(visit.signed_in))
    except SessionEnded:
        return _reload_or_sign_in(visit)
    except ProviderUnavailable:
        visit.trouble = make_trouble(503, "identity_provider_unavailable", visit.language)
        return visit.page("failures/trouble.html")
    return None


def interrupt(visit: Visit, failure: Exception) -> Response | None:
    """Return the page for a failure that another login may mend, or None for any other failure."""
    if not isinstance(failure, ApiProblem) or visit.session is None or visit.session.kind != "oidc":
        return None
    if failure.code == "mfa_required":
        age = visit.console.clock.now() - visit.session.started_at
        is_unseen = visit.session.has_second_factor and age < _UNSEEN_WITHIN
        return _show(visit, "second_factor_unseen" if is_unseen else "second_factor_needed", HTTPStatus.FORBIDDEN)
    if failure.status == HTTPStatus.UNAUTHORIZED:
        return _show(visit, "refused", HTTPStatus.UNAUTHORIZED)
    return None


def _ask_to_sign_in(visit: Visit) -> Response:
    if visit.request.method == "POST":
        had_session = visit.form.has("csrf_token")  # Of the session in which the page of the form was shown.
        response = _show(visit, "signed_out" if had_session else "not_signed_in", HTTPStatus.UNAUTHORIZED)
    else:
        response = RedirectResponse(_link(_SIGN_IN, visit), HTTPStatus.SEE_OTHER)
    visit.console.sessions.clear(visit.request, response)
    return response


def _reload_or_sign_in(visit: Visit) -> Response:
    """Go on after a session that cannot be renewed.

    Another process may have renewed it at the same moment: then the browser has the newer session, or is about to. So
    a page is loaded once more, and only a session that has not changed by then has ended.
    """
    session, jar = visit.signed_in, visit.console.jar
    if visit.request.method == "POST":
        return _show(visit, "signed_out", HTTPStatus.UNAUTHORIZED)
    fingerprint = hashlib.sha256((session.access_token or "").encode()).hexdigest()
    if jar.read(_ENDED, visit.request.cookies) == fingerprint:
        response: Response = _ask_to_sign_in(visit)
        jar.clear(response, _ENDED, visit.request.cookies)
    else:
        response = RedirectResponse(visit.here(), HTTPStatus.SEE_OTHER)
        jar.write(response, _ENDED, fingerprint, max_age_s=_ENDED_LIFETIME_S)
    return response


def _show(visit: Visit, reason: Reason, status: HTTPStatus) -> Response:
    """Return the page that says why the person has to sign in. A form that no cookie has room for stays in it.

    What a script sends is no form that somebody comes back to.
    """
    is_page = visit.request.headers.get("sec-fetch-mode", "navigate") == "navigate"
    form, session = visit.repeatable_form if is_page else Form(), visit.console.sessions.find(visit.request)
    subject = None if session is None else session.subject
    # A trial, because the page has to know how the form is kept before the response exists.
    stays_in_page = bool(form) and not visit.console.kept_forms.has_room(visit.request, form, visit.here(), subject)
    visit.trouble = make_trouble(status, f"sign_in.{reason}", visit.language)
    response = visit.page(
        "sign_in/interrupted.html",
        status,
        reason=reason,
        link=_link(_STEP_UP if reason == "second_factor_needed" else _SIGN_IN, visit),
        stays_in_page=stays_in_page,
    )
    if form and not stays_in_page:
        visit.console.kept_forms.keep(visit.request, response, form, visit.here(), subject)
    return response


def _link(path: str, visit: Visit) -> str:
    return f"{path}?return_to={quote(visit.return_path or visit.here(), safe='/')}"
