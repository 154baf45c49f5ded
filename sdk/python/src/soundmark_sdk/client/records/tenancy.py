"""Organisations, their projects, API keys, members and invitations, and their audit log."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from soundmark_sdk.client.records.record import Record, Status

Role: TypeAlias = Literal["owner", "admin", "member", "billing"]
KeyScope: TypeAlias = Literal["audience:read", "audience:write", "codes:read", "codes:write"]


@dataclass(frozen=True, slots=True)
class Caller(Record):
    """The caller that a credential belongs to. An API key has two ids and `scopes`; a person has an `email`."""

    type: Literal["user", "api_key", "operator"]
    id: str
    email: str | None
    organization_id: str | None
    project_id: str | None
    scopes: tuple[KeyScope, ...] | None
    mfa: bool
    platform_admin: bool


@dataclass(frozen=True, slots=True)
class Organization(Record):
    """An organisation, with the caller's role in it. While it is suspended, none of its Codes resolves."""

    id: str
    name: str
    role: Role
    created_at: datetime
    deletion_requested_at: datetime | None
    suspended_at: datetime | None


@dataclass(frozen=True, slots=True)
class AllowedHosts(Record):
    """The hosts to which intents of a project may lead; None allows everything, an empty tuple no link."""

    project_id: str
    hosts: tuple[str, ...] | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Project(Record):
    """A project of an organisation."""

    id: str
    organization_id: str
    name: str
    created_at: datetime
    deletion_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKey(Record):
    """An API key of one project, without its secret."""

    id: str
    organization_id: str
    project_id: str
    scopes: tuple[KeyScope, ...]
    status: Status
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    secret_rotated_at: datetime | None
    revoked_at: datetime | None
    name: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ApiKeyWithSecret(ApiKey):
    """An API key with its secret, which the service shows only once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Member(Record):
    """A member of an organisation."""

    subject_id: str
    email: str
    role: Role
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Invitation(Record):
    """An invitation, without its secret."""

    id: str
    organization_id: str
    email: str
    role: Role
    status: Literal["pending", "accepted", "expired", "revoked"]
    delivery_status: Literal["pending", "processing", "sent", "cancelled", "dead", "unavailable"]
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class InvitationWithSecret(Invitation):
    """A new invitation with its secret, which the service shows only once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Joined(Record):
    """The organisation that the caller has joined, and the caller's role in it."""

    organization_id: str
    role: Role


@dataclass(frozen=True, slots=True)
class AuditActor(Record):
    """The author of an audit entry; `type` is user, api_key, system or platform."""

    type: str
    id: str


@dataclass(frozen=True, slots=True)
class AuditEntry(Record):
    """An action in an organisation. Later releases of the service have more actions.

    `position` and `chain_hash` are its place in the organisation's chain; None until it is chained, which takes at most
    ten seconds once it has an outcome. `soundmark_sdk.verify_audit_log` checks a downloaded log.
    """

    id: str
    organization_id: str
    project_id: str | None
    action: str
    actor: AuditActor
    outcome: Literal["requested", "completed", "failed"]
    metadata: Mapping[str, Any]
    created_at: datetime
    finalised_at: datetime | None
    position: int | None
    chain_hash: str | None


@dataclass(frozen=True, slots=True)
class LoggedHead(Record):
    """A head of the audit chain that the transparency log has: the hash of the entry at the position `entries`."""

    entries: int
    chain_hash: str


@dataclass(frozen=True, slots=True)
class AuditVerification(Record):
    """Whether the audit log is unaltered. `first_broken` is the first altered entry, if there is one to name.

    `logged_head` is the newest head in the transparency log; None until the first one is there.
    """

    verified: bool
    entries: int
    unsealed: int
    first_broken: str | None
    logged_head: LoggedHead | None
