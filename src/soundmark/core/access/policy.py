"""One table from what may be done to who may do it. Data, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from soundmark.core.domain.scope import Role

Action = Literal[
    "organization.create",
    "organization.list",
    "project.create",
    "project.list",
    "code.issue",
    "code.list",
    "code.read",
    "code.revoke",
    "code.render",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """Who may: members with one of `roles`, with a second factor where `mfa`. No roles: every verified user."""

    roles: frozenset[Role] | None
    mfa: bool = False


_EVERY_MEMBER: Final[frozenset[Role]] = frozenset({"owner", "admin", "member", "billing"})
_READERS: Final[frozenset[Role]] = frozenset({"owner", "admin", "member"})
_ADMINS: Final[frozenset[Role]] = frozenset({"owner", "admin"})

# Source: contract, section 2.
POLICY: Final[Mapping[Action, Rule]] = {
    "organization.create": Rule(roles=None, mfa=True),
    "organization.list": Rule(roles=None),
    "project.create": Rule(roles=_ADMINS),
    "project.list": Rule(roles=_EVERY_MEMBER),
    "code.issue": Rule(roles=_ADMINS),
    "code.list": Rule(roles=_READERS),
    "code.read": Rule(roles=_READERS),
    "code.revoke": Rule(roles=_ADMINS),
    "code.render": Rule(roles=_READERS),
}
