"""The links that the navigation offers to each role. It only spares people refusals: Core decides what they may do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
from soundmark_sdk.client.records import Role

from soundmark.console.session import Session
from soundmark.kit.text import base64url

_ALL: Final[frozenset[Role]] = frozenset({"owner", "admin", "member", "billing"})
_MANAGING: Final[frozenset[Role]] = frozenset({"owner", "admin"})
_READING: Final[frozenset[Role]] = frozenset({"owner", "admin", "member"})
_PAYING: Final[frozenset[Role]] = frozenset({"owner", "admin", "billing"})
_PLATFORM_ROLE: Final = "svc_platform_admin"

# By the area's path, in the order in which they are shown, the roles that may read it. Source: contract, section 2.
ORGANIZATION_AREAS: Final[Mapping[str, frozenset[Role]]] = {
    "projects": _ALL,
    "members": _MANAGING,
    "audit-log": _MANAGING,
    "usage": _ALL,
    "billing": _PAYING,
    "tickets": _ALL,
    "webhooks": _MANAGING,
    "settings": _ALL,
}
PROJECT_AREAS: Final[Mapping[str, frozenset[Role]]] = {
    "codes": _READING,
    "campaigns": _ALL,
    "api-keys": _MANAGING,
    "integrations": _READING,
    "settings": _ALL,
}
# The pages of administrators, and the messages that name them.
PLATFORM_PAGES: Final[Mapping[str, str]] = {
    "/platform": "platform.settings",
    "/platform/catalog": "platform.catalog",
    "/platform/organizations": "platform.organizations",
    "/platform/abuse-reports": "platform.abuse_reports",
    "/platform/status": "platform.status",
    "/platform/readiness": "platform.readiness",
}
_ICONS: Final[Mapping[str, str]] = {
    "projects": "folder",
    "members": "users",
    "audit-log": "scroll-text",
    "usage": "gauge",
    "billing": "credit-card",
    "tickets": "life-buoy",
    "webhooks": "webhook",
    "codes": "audio-lines",
    "campaigns": "megaphone",
    "api-keys": "key-round",
    "integrations": "chart-column",
    "settings": "settings",
}


@dataclass(frozen=True, slots=True)
class Area:
    """A link of the navigation: `name` as messages spell it, and the `icon` beside it."""

    path: str
    name: str
    icon: str


@dataclass(frozen=True, slots=True)
class Section:
    """The areas of the organisation or project at `path` that a role may read."""

    kind: Literal["organization", "project"]
    path: str
    areas: list[Area]


class _RealmAccess(msgspec.Struct):
    roles: list[str] = []


class _Claims(msgspec.Struct):
    realm_access: _RealmAccess = msgspec.field(default_factory=_RealmAccess)


def list_areas(role: Role, *, in_project: bool) -> list[str]:
    """Return the areas of an organisation, or of a project, that a person with this role may read."""
    areas = PROJECT_AREAS if in_project else ORGANIZATION_AREAS
    return [path for path, roles in areas.items() if role in roles]


def list_sections(role: Role, organization_id: str, project_id: str | None) -> list[Section]:
    """Return the sections of the navigation, the narrowest first."""
    path = f"/organizations/{organization_id}"
    sections = [_make_section("organization", path, role)]
    if project_id is not None:
        sections.insert(0, _make_section("project", f"{path}/projects/{project_id}", role))
    return sections


def find_area(sections: list[Section], path: str) -> Area | None:
    """Return the area that a page belongs to; a page of a project belongs to none of its organisation's."""
    areas = sections[0].areas if sections else []
    return next((area for area in areas if f"{path}/".startswith(f"{area.path}/")), None)


def _make_section(kind: Literal["organization", "project"], path: str, role: Role) -> Section:
    names = list_areas(role, in_project=kind == "project")
    return Section(kind, path, [Area(f"{path}/{name}", name.replace("-", "_"), _ICONS[name]) for name in names])


def offers_platform(session: Session) -> bool:
    """Return whether the person's access token names an administrator of the platform; the operator is one.

    Nobody verified the token here, which is enough for a link to pages of which Core refuses every call.
    """
    if session.kind == "operator":
        return True
    try:
        payload = base64url.decode((session.access_token or "").split(".")[1])
        return _PLATFORM_ROLE in msgspec.json.decode(payload, type=_Claims).realm_access.roles
    except (IndexError, ValueError, msgspec.MsgspecError):
        return False  # It is no JWT, or has no such claim.
