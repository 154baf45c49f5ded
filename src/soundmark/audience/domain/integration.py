"""A publisher's source of measurements."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from soundmark.wire.audience_limits import DEMO_RETENTION_DAYS_MAX

Mode = Literal["demo", "contract", "self_service"]
EntitledMode = Literal["contract", "self_service"]
Status = Literal["active", "revoked"]
QuotaKey: TypeAlias = tuple[str, str]  # An organisation and a mode, whose events share a monthly quota.

MODES: Final[tuple[Mode, ...]] = ("demo", "contract", "self_service")
PREVIOUS_KEY_KEPT: Final = timedelta(minutes=7)
SECRET_PREFIX: Final = "xhm_"  # noqa: S105 - how each begins


@dataclass(frozen=True, slots=True)
class Workspace:
    """The project of an organisation that a question is about; what lies outside is not there."""

    organization_id: str
    project_id: str


@dataclass(frozen=True, slots=True)
class Integration:
    """An integration, without its secret. `core_key_id` names the key that it trusts now."""

    id: str
    organization_id: str
    project_id: str
    mode: Mode
    retention_days: int
    core_key_id: str
    created_at: datetime
    secret_rotated_at: datetime | None
    revoked_at: datetime | None

    @property
    def status(self) -> Status:
        """Revoked for ever, or active."""
        return "active" if self.revoked_at is None else "revoked"


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key of Core's that proofs are verified with."""

    key_id: str
    public_key: bytes


def is_retention_of(mode: Mode, retention_days: int) -> bool:
    """Return whether an integration of this mode may keep its data for so long."""
    return mode != "demo" or retention_days <= DEMO_RETENTION_DAYS_MAX
