"""Members of an organisation."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soundmark.core.domain.tenancy.scope import Role

# API v1, "Members, invitations, audit": only an owner may grant, change or withdraw one of these roles.
OWNERS_BUSINESS: Final[frozenset[Role]] = frozenset({"owner", "admin"})


@dataclass(frozen=True, slots=True)
class Member:
    """A person's membership of one organisation. `email` was verified when the person joined."""

    subject_id: str
    email: str
    role: Role
    created_at: datetime
