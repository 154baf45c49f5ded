"""Routes of pages: the session, the origin of forms, and failures that become pages."""

import contextlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeAlias
from urllib.parse import quote

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console import gate
from soundmark.console.context import Console
from soundmark.console.forms import read_form
from soundmark.console.language import choose_language
from soundmark.console.sealed_cookies import CookieTooLarge
from soundmark.console.sign_in.interruptions import enter, interrupt
from soundmark.console.troubles import REFUSALS, FormFromElsewhere, FormOutdated, TenantUnknown, describe
from soundmark.console.visit import Visit

Handler: TypeAlias = Callable[[Visit], Awaitable[Response]]

LANGUAGE_COOKIE: Final = "language"
# The longest query is that of the sign-in page, with a path to return to of 4,000 characters, percent-encoded; the one
# with most parameters has a hundred selected Codes.
_QUERY_BYTES_MAX: Final = 16 * 1024
_PARAMETERS_MAX: Final = 200
_log: Final = structlog.get_logger()


def page(path: str, show: Handler, *, public: bool = False, offered_by: str | None = None) -> Route:
    """Return the route of a page without a form of its own.

    A page that is not `public` sends people who are not signed in to the sign-in page, and loads the organisation and
    project that its path names. A download leads to no page: people who had to sign in for it come back to the page
    that offers it. `offered_by` is that page's path, with the parameters of `path` and, if wanted, `{query}`.
    """

    async def endpoint(request: Request) -> Response:
        visit = await open_visit(request)
        if offered_by is not None:
            visit.return_path = _fill_in(offered_by, request)
        return _complete(visit, await _answer(visit, show, public=public))

    return Route(path, endpoint, methods=["GET"])


def form_page(
    path: str,
    show: Handler,
    submit: Handler,
    *,
    is_shown_to_all: bool = False,
    is_confidential: bool = False,
) -> Route:
    """Return the route of a page with a form that is sent to the page itself.

    With `is_shown_to_all` everybody sees the form, and only people who are signed in send it. `submit` reads
    `visit.form`. If it raises FieldRefused or a failure of a call, `show` is called again with what was typed in
    `visit.form` and the reason in `visit.trouble`. What is typed into a form that `is_confidential` is in no page and
    no cookie, whatever happens.
    """

    async def endpoint(request: Request) -> Response:
        visit = await open_visit(request)
        visit.is_form_confidential = is_confidential
        if request.method == "POST":
            return _complete(visit, await _receive(visit, submit, show, public=False))
        visit.restore_form()
        return _complete(visit, await _answer(visit, show, public=is_shown_to_all))

    return Route(path, endpoint, methods=["GET", "POST"])


def action(path: str, submit: Handler, *, public: bool = False) -> Route:
    """Return the route of a form that stands on another page, such as a button; a failure has a page of its own."""

    async def endpoint(request: Request) -> Response:
        visit = await open_visit(request)
        if request.method == "POST":
            return _complete(visit, await _receive(visit, submit, None, public=public))
        visit.restore_form()
        return _complete(visit, await _answer(visit, _offer_again, public=public))

    return Route(path, endpoint, methods=["GET", "POST"])


async def open_visit(request: Request) -> Visit:
    """Return the visit that a request is.

    Raises: HTTPException for an excessive query.
    """
    if drop_excessive_query(request):
        raise HTTPException(HTTPStatus.REQUEST_URI_TOO_LONG)
    console: Console = request.app.state.console
    name = f"{console.jar.prefix}{LANGUAGE_COOKIE}"
    language = choose_language(request.cookies.get(name), request.headers.get("accept-language", ""))
    return Visit(console, request, await console.sessions.read(request), language)


def drop_excessive_query(request: Request) -> bool:
    """Remove a query that no page of the console links to, before it is decoded; return whether there was one."""
    query_string = request.scope["query_string"]
    is_excessive = len(query_string) > _QUERY_BYTES_MAX or query_string.count(b"&") >= _PARAMETERS_MAX
    if is_excessive:
        request.scope["query_string"] = b""
    return is_excessive


def _fill_in(path: str, request: Request) -> str:
    values = {name: quote(str(value), safe="") for name, value in request.path_params.items()}
    return path.format_map({**values, "query": request.url.query}).removesuffix("?")


async def _answer(visit: Visit, show: Handler, *, public: bool) -> Response:
    if not public and (instead := await enter(visit)) is not None:
        return instead
    try:
        if not public:
            await visit.load_tenant()
        return await show(visit)
    except REFUSALS as refused:
        if (instead := interrupt(visit, refused)) is not None:
            return instead
        visit.trouble = describe(refused, visit.language)
    return visit.page("failures/trouble.html")


async def _offer_again(visit: Visit) -> Response:
    """Offer a button again that could not do its work because the person had to sign in first."""
    if not visit.form:
        raise TenantUnknown
    return visit.page("sign_in/continue.html")


def _complete(visit: Visit, response: Response) -> Response:
    """Put what changed during the visit into the browser."""
    if visit.renewed_session is not None:
        try:
            visit.console.sessions.renew(visit.request, response, visit.renewed_session)
        except CookieTooLarge:
            _log.exception("renewed_tokens_too_large")  # The page is as good as it was with the tokens before.
    # A redirect, such as the one to the sign-in page, showed the form to nobody.
    if visit.has_restored_form and response.status_code == HTTPStatus.OK:
        visit.console.kept_forms.forget(visit.request, response)
    return response


async def _receive(visit: Visit, submit: Handler, show: Handler | None, *, public: bool) -> Response:
    try:
        await _read_form(visit)
    except REFUSALS as refused:
        visit.trouble = describe(refused, visit.language)
        return visit.page("failures/trouble.html")
    if not public and (instead := await enter(visit)) is not None:
        return instead
    try:
        if not public:
            await visit.load_tenant()
        if not visit.is_own_form():
            raise FormOutdated
        return await submit(visit)
    except TenantUnknown as refused:
        visit.trouble = describe(refused, visit.language)
    except REFUSALS as refused:
        if (instead := interrupt(visit, refused)) is not None:
            return instead
        visit.trouble = describe(refused, visit.language)
        if show is not None:
            # The page may need Core too, or what it showed is gone; then the page of the failure keeps what was typed.
            with contextlib.suppress(*REFUSALS):
                return await show(visit)
    return visit.page("failures/trouble.html")


async def _read_form(visit: Visit) -> None:
    if not gate.is_same_origin(visit):  # Before anything of the form is read.
        _log.warning("form_from_elsewhere", path=visit.request.scope["path"])
        raise FormFromElsewhere
    visit.form = await read_form(visit.request)
