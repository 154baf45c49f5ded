"""The front door: the first page, the choice of a language, and the pages for errors."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from soundmark.console.language import LOCALES
from soundmark.console.parts import read_part
from soundmark.console.return_path import check_return_path
from soundmark.console.routing import LANGUAGE_COOKIE, action, drop_excessive_query, open_visit, page
from soundmark.console.troubles import make_trouble
from soundmark.console.visit import Visit

_YEAR_S: Final = 365 * 24 * 3600
_CODES: Final[Mapping[int, str]] = {
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.REQUEST_URI_TOO_LONG: "address_too_long",
    HTTPStatus.SERVICE_UNAVAILABLE: "guide_not_built",
}
_log: Final = structlog.get_logger()


async def open_first_page(visit: Visit) -> Response:
    """Lead to the home page of the person's only organisation, and to the list of organisations otherwise."""
    listed = await read_part(visit.core.organizations.page(limit=2))
    if listed is None or len(listed.data) != 1 or listed.next_cursor is not None:
        return visit.redirect("/organizations")
    return visit.redirect(f"/organizations/{listed.data[0].id}")


async def choose_language(visit: Visit) -> Response:
    """Keep the language that the person chose, and return to the page."""
    response = visit.redirect(check_return_path(visit.form.text("return_to")))
    chosen = visit.form.text("language")
    if chosen in LOCALES:
        jar = visit.console.jar
        response.set_cookie(
            f"{jar.prefix}{LANGUAGE_COOKIE}",
            chosen,
            max_age=_YEAR_S,
            path="/",
            secure=jar.is_secure,
            httponly=True,
            samesite="lax",
        )
    return response


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Answer a path without a page, a method that the page does not have, or a query that no page has."""
    assert isinstance(error, HTTPException), "registered for this error alone"
    drop_excessive_query(request)
    visit = await open_visit(request)
    code = _CODES.get(error.status_code, "page_not_found")
    visit.trouble = make_trouble(error.status_code, code, visit.language)
    response = visit.page("failures/trouble.html")
    response.headers.update(error.headers or {})
    return response


async def answer_defect(request: Request, error: Exception) -> Response:
    """Answer after a mistake of ours, which the log describes."""
    _log.error("page_failed", exc_info=error)
    drop_excessive_query(request)
    visit = await open_visit(request)
    visit.trouble = make_trouble(500, "defect", visit.language)
    return visit.page("failures/trouble.html")


routes: Final[list[Route]] = [
    page("/", open_first_page),
    action("/language", choose_language, public=True),
]
handlers: Final[Mapping[Any, Callable[[Request, Exception], Any]]] = {
    HTTPException: answer_http_error,
    Exception: answer_defect,
}
