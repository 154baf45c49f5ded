"""Templates: Jinja2 with autoescape, and the addresses of static files."""

import hashlib
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

_VERSION_CHARS: Final = 12
STATIC_FOLDER: Final = resources.files(__package__).joinpath("static")


@cache
def locate_static(path: str) -> str:
    """Return the URL of a static file, which changes with its content, so that browsers may keep it for ever."""
    content = STATIC_FOLDER.joinpath(path).read_bytes()
    return f"/static/{path}?v={hashlib.sha256(content).hexdigest()[:_VERSION_CHARS]}"


_TEMPLATES: Final = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    # The files of an installation do not change while it runs; looking would cost every page a tenth of a millisecond.
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals["static"] = locate_static


def render(template: str, status: int, **context: Any) -> Response:
    """Return a page that no cache may keep, not even the browser's."""
    html = _TEMPLATES.get_template(template).render(context)
    return HTMLResponse(html, status, {"cache-control": "no-store"})
