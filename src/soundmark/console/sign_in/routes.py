"""Signing in, stepping up to a second factor, and signing out."""

import contextlib
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import structlog
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from soundmark.console.return_path import FIRST_PAGE, check_return_path
from soundmark.console.routing import action, page
from soundmark.console.sealed_cookies import CookieTooLarge
from soundmark.console.session import Session
from soundmark.console.sign_in.answers import FailureCode, SignInFailed, judge_answer
from soundmark.console.sign_in.attempts import Attempt, was_repeated
from soundmark.console.sign_in.context import CALLBACK_PATH, SIGNED_OUT_PATH
from soundmark.console.sign_in.identity_provider import Identity, ProviderUnavailable, Tokens
from soundmark.console.troubles import make_trouble
from soundmark.console.visit import Visit
from soundmark.kit.text import base64url

_PATH: Final = "/sign-in"
_STEP_UP_PATH: Final = "/sign-in/step-up"
_CSRF_BYTES: Final = 32

_log: Final = structlog.get_logger()


async def begin(visit: Visit) -> Response:
    """Send the browser to the identity provider."""
    return await _begin(visit, _return_path(visit))


async def step_up(visit: Visit) -> Response:
    """Send the browser to the identity provider for a login with a second factor, by the same person."""
    subject = visit.session.subject if visit.session is not None and visit.session.kind == "oidc" else None
    return await _begin(visit, _return_path(visit), needs_second_factor=True, subject=subject)


async def finish(visit: Visit) -> Response:
    """Take the answer that the browser brings from the identity provider."""
    sign_in, state = visit.console.sign_in, visit.query("state") or ""
    if sign_in is None:
        return _fail(visit, "sign_in.not_configured")
    attempt = sign_in.attempts.find(visit.request, state)
    if attempt is None:
        return await _start_anew(visit, state)
    try:
        identity, tokens = await judge_answer(
            sign_in.provider,
            attempt,
            issuer=visit.request.query_params.get("iss"),
            code=visit.query("code"),
            error=visit.query("error"),
        )
        response = await _welcome(visit, attempt.return_to, identity, tokens)
    except SignInFailed as failed:
        response = _fail(visit, failed.code, attempt)
    sign_in.attempts.forget(visit.request, response, state)
    return response


async def sign_out(visit: Visit) -> Response:
    """End the session here and at the identity provider.

    Here first: if this process dies after that, the session has ended, and signing out again does the rest.
    """
    sign_in, sessions = visit.console.sign_in, visit.console.sessions
    await sessions.end(visit.request)
    url = None
    # The provider's session may outlast ours, and only the operator never has one there.
    if sign_in is not None and (visit.session is None or visit.session.kind == "oidc"):
        if (left := sessions.find(visit.request)) is not None:
            await sign_in.renewal.revoke(left)
        return_to = f"{visit.console.addresses.console}{SIGNED_OUT_PATH}"
        with contextlib.suppress(ProviderUnavailable):  # Then the session here ends all the same.
            url = await sign_in.provider.end_session_url(return_to, visit.language.code)
    visit.session = None
    response = RedirectResponse(SIGNED_OUT_PATH, HTTPStatus.SEE_OTHER) if url is None else _lead_out(visit, url)
    sessions.remove(visit.request, response)
    visit.console.kept_forms.forget(visit.request, response)
    return response


async def show_signed_out(visit: Visit) -> Response:
    """Say that the session has ended."""
    return visit.page("sign_in/signed_out.html")


async def _begin(
    visit: Visit,
    return_to: str,
    *,
    needs_second_factor: bool = False,
    subject: str | None = None,
    repeated: bool = False,
) -> Response:
    sign_in = visit.console.sign_in
    if sign_in is None:
        return visit.page("sign_in/front.html")
    attempt = sign_in.attempts.make(
        return_to, needs_second_factor=needs_second_factor, subject=subject, repeated=repeated
    )
    try:
        url = await sign_in.provider.begin(attempt, visit.language.code)
    except ProviderUnavailable:
        return _fail(visit, "identity_provider_unavailable", attempt)
    response = _lead_out(visit, url)
    sign_in.attempts.write(visit.request, response, attempt)
    return response


async def _start_anew(visit: Visit, state: str) -> Response:
    """Go on after an answer to an attempt that this browser does not know.

    It may be finished already (the back button), too old, or somebody else's (a forged link). A browser that keeps no
    cookies would come back like this for ever, so it is sent away once only.
    """
    if visit.session is not None:
        return RedirectResponse(FIRST_PAGE, HTTPStatus.SEE_OTHER)
    if was_repeated(state):
        return _fail(visit, "sign_in.lost")
    return await _begin(visit, FIRST_PAGE, repeated=True)


async def _welcome(visit: Visit, return_to: str, identity: Identity, tokens: Tokens) -> Response:
    """Replace the whole session, and lead back to where the person was.

    Raises: SignInFailed.
    """
    console = visit.console
    session = Session(
        kind="oidc",
        subject=identity.subject,
        email=identity.email,
        csrf_token=base64url.encode(console.entropy.take(_CSRF_BYTES)),
        started_at=console.clock.now(),
        has_second_factor=identity.has_second_factor,
        access_token=tokens.access_token,
        access_expires_at=tokens.expires_at,
        refresh_token=tokens.refresh_token,
    )
    has_form = console.kept_forms.find(visit.request, return_to, identity.subject) is not None
    response = visit.redirect(return_to, "sign_in.form_is_back" if has_form else None)
    try:
        await console.sessions.begin(visit.request, response, session)
    except CookieTooLarge:
        _log.error("tokens_too_large", bytes=len(tokens.access_token) + len(tokens.refresh_token or ""))
        raise SignInFailed("sign_in.tokens_too_large") from None
    return response


def _fail(visit: Visit, code: FailureCode, attempt: Attempt | None = None) -> Response:
    """Return the page that says why nobody was signed in. It begins nothing by itself."""
    visit.trouble = make_trouble(SignInFailed(code).status, code, visit.language)
    return visit.page(
        "sign_in/failed.html",
        begin_path=_STEP_UP_PATH if attempt is not None and attempt.needs_second_factor else _PATH,
        return_to=FIRST_PAGE if attempt is None else attempt.return_to,
    )


def _lead_out(visit: Visit, url: str) -> Response:
    """Lead to the identity provider at once: by a redirect, or by a page if a form of ours may have begun this visit.

    Browsers apply `form-action` of our policy to every redirect after a form, such as a list's filters or the choice of
    a language, and the provider may lead to several other origins.
    """
    if visit.request.method == "GET" and visit.request.headers.get("sec-fetch-site") != "same-origin":
        return RedirectResponse(url, HTTPStatus.SEE_OTHER, {"cache-control": "no-store"})
    return visit.page("sign_in/lead_out.html", url=url, host=urlsplit(url).netloc)


def _return_path(visit: Visit) -> str:
    """Return the page that the person wanted to see; none of ours about signing in, which would begin again."""
    path = check_return_path(visit.query("return_to") or FIRST_PAGE)
    return FIRST_PAGE if path.startswith("/sign-") else path


routes: Final[list[Route]] = [
    page(_PATH, begin, public=True),
    page(_STEP_UP_PATH, step_up, public=True),
    page(CALLBACK_PATH, finish, public=True),
    page(SIGNED_OUT_PATH, show_signed_out, public=True),
    action("/sign-out", sign_out, public=True),
]
