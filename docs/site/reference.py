"""The pages that are generated: the API by groups of operations, and every problem."""

import inspect
import json
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from soundmark.core.app import bare_app
from soundmark.core.published.catalogue import CATALOGUE
from soundmark.core.published.reference.reading import Group, read_reference
from soundmark.core.published.routes import openapi_document
from soundmark.settings import ContractSettings

_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=False,  # noqa: S701 - Markdown of our own documents, not HTML of somebody else's
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def write_reference(folder: Path) -> None:
    """Write the page of each group of operations, that of the problems, and the OpenAPI document beside them."""
    document = openapi_document(bare_app(), ContractSettings().base_url)
    reference = read_reference(json.loads(document))
    api = folder / "reference" / "api"
    api.mkdir(parents=True)
    (api / "openapi.json").write_text(document, encoding="utf-8")
    _write(api / "index.md", "api.md.jinja", reference=reference)
    for group in reference.groups:
        _write(api / f"{name_page(group)}.md", "group.md.jinja", group=group)
    _write(folder / "reference" / "problems.md", "problems.md.jinja", problems=list(CATALOGUE.values()))


def name_page(group: Group) -> str:
    """Return the name of a group's page."""
    return group.name.lower().replace(" ", "-")


def _cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _write(path: Path, template: str, **values: object) -> None:
    path.write_text(_TEMPLATES.get_template(template).render(**values), encoding="utf-8")


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


_TEMPLATES.filters.update(cell=_cell, page=name_page, pretty=_pretty, prose=inspect.cleandoc)
