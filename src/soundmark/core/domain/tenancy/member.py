"""Members of an organisation."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from soundmark.core.domain.tenancy.scope import Role

# API v1, "Members, invitations, audit": whoever holds or is to hold one of these is an owner's business alone.
OWNERS_BUSINESS: Final[frozenset[Role]] = frozenset({"owner", "admin"})


@dataclass(frozen=True, slots=True)
class Member:
    """A person's part in one organisation. `email` is the one that was verified when the person joined."""

    subject_id: str
    email: str
    role: Role
    created_at: datetime
