"""Callers, and the tenant that they act in."""

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

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
    """A caller with an API key that is neither revoked nor expired, limited to one project and to `scopes`.

    `digest` is that of the secret it used: a key with another secret is another credential.
    """

    id: str
    organization_id: str
    project_id: str
    scopes: frozenset[KeyScope]
    digest: bytes = field(repr=False)


Caller: TypeAlias = User | ServerKey


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acted, according to an audit entry."""

    type: ActorType
    id: str


# Whichever administrator acted: the process log names them, an organisation's audit log does not.
PLATFORM: Final = Actor("platform", "operator")
SYSTEM: Final = Actor("system", "soundmark")  # Nobody: time passed, or another system said so.


@dataclass(frozen=True, slots=True)
class TenantScope:
    """The organisation that an authorised caller acts in. Only `access.authorise` makes scopes.

    `project_id` is the only project that an API key may reach, None for a person. Every statement about data of a
    project includes it. `role` is None for an API key. `allowed_roles` are the roles with which a person may carry out
    the authorised action; there are none for an API key.
    """

    organization_id: str
    project_id: str | None
    actor: Actor
    caller: Caller
    role: Role | None
    allowed_roles: frozenset[Role]

    def reaches(self, project_id: str) -> bool:
        """Return whether the caller may reach this project."""
        return self.project_id is None or self.project_id == project_id

    @property
    def user(self) -> User:
        """The caller of an action that only people may carry out."""
        assert isinstance(self.caller, User), "the policy also allows API keys here"
        return self.caller
