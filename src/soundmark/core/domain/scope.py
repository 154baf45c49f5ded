"""Who asks, and inside which tenant."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["owner", "admin", "member", "billing"]


@dataclass(frozen=True, slots=True)
class User:
    """A person behind a verified credential."""

    subject_id: str
    email: str
    has_mfa: bool
    is_platform_admin: bool


@dataclass(frozen=True, slots=True)
class TenantScope:
    """The organisation that an authorised caller acts in. Made by `access.authorise` and by nobody else."""

    organization_id: str
    user: User
    role: Role
