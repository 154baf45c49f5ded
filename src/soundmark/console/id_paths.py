"""The pages of things that are known by their ids, and ids written short."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

_IN_PROJECT: Final = "/organizations/{organization_id}/projects/{project_id}"
# By the prefix of an id. API keys have one page together. Source: contract, section 1.
_PATHS: Final[Mapping[str, str]] = {
    "bco": "/billing/checkouts/{id}",
    "bsu": "/organizations/{organization_id}/billing",
    "cmp": f"{_IN_PROJECT}/campaigns/{{id}}",
    "dct": "/deletions/{id}",
    "evn": "/organizations/{organization_id}/webhooks/events/{id}",
    "int": f"{_IN_PROJECT}/integrations/{{id}}",
    "key": f"{_IN_PROJECT}/api-keys",
    "prj": "/organizations/{organization_id}/projects/{id}",
    "tkt": "/organizations/{organization_id}/tickets/{id}",
    "whe": "/organizations/{organization_id}/webhooks/{id}",
    "xr": f"{_IN_PROJECT}/codes/{{id}}",
}
_SHORT_CHARS_MAX: Final = 16


def find_path(organization_id: str, project_id: str | None, identity: str) -> str | None:
    """Return the path of the page that shows what the id names, or None if there is none."""
    path = _PATHS.get(identity.partition("_")[0]) if _is_id(identity) else None
    if path is None or (project_id is None and "{project_id}" in path):
        return None
    return path.format(organization_id=organization_id, project_id=project_id, id=identity)


def shorten_id(identity: str) -> str:
    """Return an id as people compare it: its prefix and first characters, and its last ones."""
    return f"{identity[:7]}…{identity[-4:]}" if len(identity) > _SHORT_CHARS_MAX and _is_id(identity) else identity


def mark_id(organization_id: str, project_id: str | None, identity: str) -> Markup:
    """Return an id, shortened, as a link to the page of what it names, if there is one."""
    shown = Markup('<code title="{}">{}</code>').format(identity, shorten_id(identity))
    path = find_path(organization_id, project_id, identity)
    return shown if path is None else Markup('<a href="{}">{}</a>').format(path, shown)


def _is_id(text: str) -> bool:
    return text.isascii() and text.replace("-", "_").isidentifier()
