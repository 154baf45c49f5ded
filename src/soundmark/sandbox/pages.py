"""The pages: plain HTML and forms, without scripts."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from soundmark.kit.http.requests.bodies import parse_in_turn

_PLAIN_HOST: Final = re.compile(r"[A-Za-z0-9._\[\]:-]+")
_FORM_BYTES_MAX: Final = 64 * 1024
_FIELDS_MAX: Final = 100
_TEMPLATES: Final = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_STYLE: Final = resources.files(__package__).joinpath("templates/style.css").read_text(encoding="utf-8")


class FormTooLarge(HTTPException):
    """A form holds more than any page sends."""

    def __init__(self) -> None:
        super().__init__(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def render(template: str, *, status: int = 200, leads_to: Iterable[str | None] = (), **context: Any) -> Response:
    """Return a page.

    `leads_to` are the URLs to which its forms redirect: browsers apply `form-action` to redirects as well.
    """
    actions = " ".join(["'self'", *sorted({_origin(url) for url in leads_to if url and _is_plain(url)})])
    headers = {
        "content-security-policy": "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; "
        f"frame-ancestors 'none'; form-action {actions}",
        "cache-control": "no-store",
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }
    return HTMLResponse(_TEMPLATES.get_template(template).render(context), status, headers)


def redirect(url: str) -> Response:
    """Return a redirect after a form."""
    return RedirectResponse(url, 303)


async def style(_: Request) -> Response:
    """Answer the style sheet of every page."""
    return Response(_STYLE, media_type="text/css")


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form; of a repeated field, the last.

    Raises: FormTooLarge.
    """
    return await parse_fields(await read_limited(request))


async def parse_fields(body: bytes) -> Mapping[str, str]:
    """Return the fields of a form that was read.

    Raises: FormTooLarge.
    """
    try:
        return await parse_in_turn(body, _parse)
    except ValueError:
        raise FormTooLarge from None


def _parse(body: bytes) -> dict[str, str]:
    """Raises: ValueError, for too many fields before any is decoded."""
    return dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=_FIELDS_MAX))


async def read_limited(request: Request) -> bytes:
    """Return the body of a page's request.

    Raises: FormTooLarge.
    """
    size, chunks = 0, []
    async for chunk in request.stream():
        size += len(chunk)
        if size > _FORM_BYTES_MAX:
            raise FormTooLarge
        chunks.append(chunk)
    return b"".join(chunks)


def own_url(request: Request, path: str) -> str:
    """Return the URL of `path` here, at the address that the caller used."""
    return f"http://{request.headers['host']}{path}"


def _is_plain(url: str) -> bool:
    """Return whether the URL's origin may stand in a header: a seller writes it."""
    return _PLAIN_HOST.fullmatch(urlsplit(url).netloc) is not None


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
