"""Organisations and projects."""

from dataclasses import dataclass
from datetime import datetime

from soundmark.core.domain.tenancy.scope import Role


@dataclass(frozen=True, slots=True)
class Organization:
    """A tenant, from the point of view of one of its members."""

    id: str
    name: str
    role: Role
    created_at: datetime
    deletion_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class Project:
    """A part of an organisation that Codes belong to."""

    id: str
    organization_id: str
    name: str
    created_at: datetime
    deletion_requested_at: datetime | None
