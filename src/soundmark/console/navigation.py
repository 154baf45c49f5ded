"""The links that the navigation offers to each role. It only spares people refusals: Core decides what they may do."""

from collections.abc import Mapping
from typing import Final

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
}
PROJECT_AREAS: Final[Mapping[str, frozenset[Role]]] = {
    "codes": _READING,
    "campaigns": _ALL,
    "api-keys": _MANAGING,
    "integrations": _READING,
}


class _RealmAccess(msgspec.Struct):
    roles: list[str] = []


class _Claims(msgspec.Struct):
    realm_access: _RealmAccess = msgspec.field(default_factory=_RealmAccess)


def list_areas(role: Role, *, in_project: bool) -> list[str]:
    """Return the areas of an organisation, or of a project, that a person with this role may read."""
    areas = PROJECT_AREAS if in_project else ORGANIZATION_AREAS
    return [path for path, roles in areas.items() if role in roles]


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
