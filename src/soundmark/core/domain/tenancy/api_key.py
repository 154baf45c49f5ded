"""API keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark.core.domain.tenancy.scope import KeyScope

KeyState = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key as stored, without its secret, which is not stored anywhere."""

    id: str
    organization_id: str
    project_id: str
    name: str | None
    scopes: Sequence[KeyScope]
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    secret_rotated_at: datetime | None
    revoked_at: datetime | None

    def status(self, now: datetime) -> KeyState:
        """Return the status at `now`: revoked, else expired or active.

        Source: API v1, "Server API key".
        """
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at <= now else "active"
