"""The public views of organisations, projects, members and API keys."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from soundmark.core.domain.tenancy.api_key import ApiKey, KeyState
from soundmark.core.domain.tenancy.scope import KeyScope, Role
from soundmark.wire.shape import Timestamp, Wire


class ArchivedOrganization(Wire):
    """An organisation in an archive."""

    id: str
    name: str
    role: Literal["owner", "admin", "member", "billing"]
    created_at: Timestamp
    deletion_requested_at: Timestamp | None


class OrganizationView(ArchivedOrganization):
    """An organisation, as one of its members sees it."""

    suspended_at: Annotated[
        Timestamp | None,
        Field(description="Since when the platform keeps its Codes from resolving and refuses additions; else null."),
    ]


class ProjectView(Wire):
    """A project."""

    id: str
    organization_id: str
    name: str
    created_at: Timestamp
    deletion_requested_at: Timestamp | None


class MemberView(Wire):
    """A person's membership of an organisation."""

    subject_id: str
    email: str
    role: Role
    created_at: Timestamp


class ArchivedApiKey(Wire):
    """An API key in an archive, without its secret and its name."""

    id: str
    organization_id: str
    project_id: str
    scopes: list[KeyScope]
    status: KeyState
    created_at: Timestamp
    expires_at: Timestamp
    last_used_at: Timestamp | None
    secret_rotated_at: Timestamp | None
    revoked_at: Timestamp | None


class ApiKeyView(ArchivedApiKey):
    """An API key without its secret, which cannot be read again."""

    name: Annotated[str | None, Field(description="A display name; null if the key has none.")]


def archived_api_key(key: ApiKey, now: datetime) -> ArchivedApiKey:
    """Return one key as archives have it, with its status at `now`."""
    return ArchivedApiKey.from_record(key, scopes=list(key.scopes), status=key.status(now))


def api_key_view(key: ApiKey, now: datetime) -> ApiKeyView:
    """Return the view of one key, with its status at `now`."""
    return ApiKeyView.from_record(key, scopes=list(key.scopes), status=key.status(now))
