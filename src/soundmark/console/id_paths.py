"""The pages of things that are known by their ids."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup, escape

from soundmark.kit.text.ids import may_be_id

_IN_PROJECT: Final = "/organizations/{organization_id}/projects/{project_id}"
# By the prefix of an id. API keys have one page together, with a row for each, and invitations as well.
# Source: contract, section 1.
_PATHS: Final[Mapping[str, str]] = {
    "aud": "/organizations/{organization_id}/audit-log",
    "bco": "/billing/checkouts/{id}",
    "bsu": "/organizations/{organization_id}/billing",
    "cmp": f"{_IN_PROJECT}/campaigns/{{id}}",
    "dct": "/deletions/{id}",
    "evn": "/organizations/{organization_id}/webhooks/events/{id}",
    "int": f"{_IN_PROJECT}/integrations/{{id}}",
    "inv": "/organizations/{organization_id}/members/invitations#{id}",
    "key": f"{_IN_PROJECT}/api-keys#{{id}}",
    "prj": "/organizations/{organization_id}/projects/{id}",
    "tkt": "/organizations/{organization_id}/tickets/{id}",
    "whe": "/organizations/{organization_id}/webhooks/{id}",
    "xr": f"{_IN_PROJECT}/codes/{{id}}",
}
_WHOLE_CHARS_MAX: Final = 14


def find_path(organization_id: str, project_id: str | None, identity: str) -> str | None:
    """Return the path of the page that shows what the id names, or None if there is none."""
    path = _PATHS.get(identity.partition("_")[0]) if may_be_id(identity) else None
    if path is None or (project_id is None and "{project_id}" in path):
        return None
    return path.format(organization_id=organization_id, project_id=project_id, id=identity)


def mark_id(organization_id: str, project_id: str | None, identity: str, name: str | None = None) -> Markup:
    """Return an id as a link to what it names, or with Copy where there is none, both without its middle.

    A `name` takes the place of the id.
    """
    path = find_path(organization_id, project_id, identity)
    # A page of a list has hundreds: `Markup.format` would take longer than all the rest.
    if name is None:
        copied = " data-copy-value" if path is None else ""  # A link has no room for a button.
        shown = f'<code class="id" title="{escape(identity)}"{copied}>{shorten_id(identity)}</code>'
    else:
        shown = f'<bdi title="{escape(identity)}">{escape(name)}</bdi>'
    return Markup(shown if path is None else f'<a href="{escape(path)}">{shown}</a>')  # noqa: S704 - escaped above


def copy_id(identity: object, href: str | None = None, whole: int = _WHOLE_CHARS_MAX) -> Markup:
    """Return an id that the button of a script copies whole; where it is a link, the button stands beside the link."""
    copied, shown = escape(str(identity)), shorten_id(str(identity), whole)
    attributes = f'class="id" title="{copied}" data-copy-value="{copied}"'
    if href is None:
        return Markup(f"<code {attributes}>{shown}</code>")  # noqa: S704 - escaped above
    return Markup(f'<span {attributes}><a href="{escape(href)}"><code>{shown}</code></a></span>')  # noqa: S704 - as above


def shorten_id(identity: str, whole: int = _WHOLE_CHARS_MAX) -> Markup:
    """Return an id of more than `whole` characters without its middle, which is selected with it."""
    if len(identity) <= whole:
        return escape(identity)
    begin, middle, end = map(escape, (identity[:8], identity[8:-4], identity[-4:]))
    return Markup(f'{begin}<span class="middle">{middle}</span>{end}')  # noqa: S704 - escaped above
