"""Templates: Jinja2 with autoescape."""

from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from soundmark.console.forms import write_instant
from soundmark.console.static_files import locate_static

_TEMPLATES: Final = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    # The files of an installation do not change while it runs; looking would cost every page a tenth of a millisecond.
    auto_reload=False,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals |= {"static": locate_static, "write_instant": write_instant}


def render(template: str, status: int, **context: Any) -> Response:
    """Return a page that no cache may keep, not even the browser's."""
    html = _TEMPLATES.get_template(template).render(context)
    return HTMLResponse(html, status, {"cache-control": "no-store"})
