"""Who asks, and inside which tenant."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Role = Literal["owner", "admin", "member", "billing"]
KeyScope = Literal["audience:read", "audience:write", "codes:read", "codes:write"]
ActorType = Literal["user", "api_key", "system", "platform"]


@dataclass(frozen=True, slots=True)
class User:
    """A person behind a verified credential. `email` is verified too."""

    subject_id: str
    email: str
    has_mfa: bool
    is_platform_admin: bool


@dataclass(frozen=True, slots=True)
class ServerKey:
    """A machine behind a key that is neither revoked nor expired: of one project, for what `scopes` say.

    `digest` is that of the secret which it came with: another secret makes it another credential.
    """

    id: str
    organization_id: str
    project_id: str
    scopes: frozenset[KeyScope]
    digest: bytes = field(repr=False)


Caller: TypeAlias = User | ServerKey


@dataclass(frozen=True, slots=True)
class Actor:
    """Who an audit entry names."""

    type: ActorType
    id: str


@dataclass(frozen=True, slots=True)
class TenantScope:
    """The organisation that an authorised caller acts in. Made by `access.authorise` and by nobody else.

    `project_id` is the one project that the caller is confined to, None for a person; statements on what belongs to a
    project name it. `role` is None for a key;
    `allowed_roles` are those with which a person may do what the scope was made for.
    """

    organization_id: str
    project_id: str | None
    actor: Actor
    caller: Caller
    role: Role | None
    allowed_roles: frozenset[Role]

    def reaches(self, project_id: str) -> bool:
        """Whether the caller is confined to no other project than this one."""
        return self.project_id is None or self.project_id == project_id

    @property
    def user(self) -> User:
        """The caller of an act that only people may do."""
        assert isinstance(self.caller, User), "the policy lets keys do this"
        return self.caller
