"""The HTML pages: the API reference, generated from the OpenAPI document, and one page for each problem.

Each page is self-contained: no script, and no font or picture from elsewhere.
"""

from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from soundmark.core.published.reference.markup import json_text, prose
from soundmark.core.published.reference.reading import read_reference

_TEMPLATES: Final = Environment(
    loader=PackageLoader(__name__),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters.update(prose=prose, json_text=json_text)


def render_reference(openapi: Mapping[str, Any]) -> str:
    """Return the HTML page of an OpenAPI 3.1 document whose operations state in `x-svc-access` who may use them."""
    return _TEMPLATES.get_template("reference.html").render(reference=read_reference(openapi))


def render_problem(code: str, title: str, status: int, kind_text: str) -> str:
    """Return the HTML page of one problem. `title` is what callers get; `kind_text` explains it in a few sentences."""
    return _TEMPLATES.get_template("problem.html").render(code=code, title=title, status=status, text=kind_text)
