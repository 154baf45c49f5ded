"""Organisations and projects."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark.core.domain.tenancy.scope import Role


@dataclass(frozen=True, slots=True)
class Organization:
    """A tenant, from the point of view of one of its members.

    While `suspended_at` is set, none of its Codes resolves, and nothing can be added to it.
    """

    id: str
    name: str
    role: Role
    created_at: datetime
    deletion_requested_at: datetime | None
    suspended_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlatformOrganization:
    """A tenant, from the point of view of an administrator of the platform."""

    id: str
    name: str
    created_at: datetime
    deletion_requested_at: datetime | None
    suspended_at: datetime | None
    suspension_reason: str | None


# An organisation can be suspended and closing; it is active if it is neither.
OrganizationStatus = Literal["active", "suspended", "closing"]


@dataclass(frozen=True, slots=True)
class Project:
    """A part of an organisation that Codes belong to."""

    id: str
    organization_id: str
    name: str
    created_at: datetime
    deletion_requested_at: datetime | None
