"""Integrations, with which publishers measure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias, get_args

from soundmark.kit.text import base64url
from soundmark.wire.audience_limits import DEMO_RETENTION_DAYS_MAX
from soundmark.wire.private.parts import CoreKey
from soundmark.wire.shape import AudienceMode

Status = Literal["active", "revoked"]
QuotaKey: TypeAlias = tuple[str, str]  # An organisation and a mode, whose events share a monthly quota.

MODES: Final[tuple[AudienceMode, ...]] = get_args(AudienceMode)
PREVIOUS_KEY_KEPT: Final = timedelta(minutes=7)
SECRET_PREFIX: Final = "xhm_"  # noqa: S105 - how each begins


@dataclass(frozen=True, slots=True)
class Workspace:
    """The project of an organisation that a request is about; nothing outside it exists for the caller."""

    organization_id: str
    project_id: str


@dataclass(frozen=True, slots=True)
class Integration:
    """An integration, without its secret. `core_key_id` names the key that it trusts now."""

    id: str
    organization_id: str
    project_id: str
    mode: AudienceMode
    retention_days: int
    core_key_id: str
    created_at: datetime
    secret_rotated_at: datetime | None
    revoked_at: datetime | None

    @property
    def status(self) -> Status:
        """Active, or revoked for good."""
        return "active" if self.revoked_at is None else "revoked"


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key of Core's with which proofs are verified."""

    key_id: str
    public_key: bytes

    @classmethod
    def from_shape(cls, key: CoreKey) -> "TrustedKey":
        """Return the key that Core sent."""
        return cls(key.key_id, base64url.decode(key.public_key))


def is_retention_of(mode: AudienceMode, retention_days: int) -> bool:
    """Return whether an integration of this mode may keep its data for so many days."""
    return mode != "demo" or retention_days <= DEMO_RETENTION_DAYS_MAX
