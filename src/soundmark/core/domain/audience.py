"""Measurement, as Core knows it: integrations, what entitles to them, and what was used."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from soundmark.kit.secret import Secret

AudienceMode = Literal["demo", "contract", "self_service"]
EntitledMode = Literal["contract", "self_service"]

_INTEGRATION_ID: Final = re.compile(r"int_[A-Za-z0-9_-]{8,128}", re.ASCII)


def may_be_integration_id(text: str) -> bool:
    """Whether an integration's id could be spelled like this; what is not need not be asked about."""
    return _INTEGRATION_ID.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class CoreKey:
    """A public key of Core's, which an integration is to trust."""

    key_id: str
    public_key: bytes


@dataclass(frozen=True, slots=True)
class Entitlement:
    """What an organisation may measure in a mode: so many events a month, until `ends_at` or without an end.

    `revision` grows with each change, so that of two projections the later one is told from the earlier.
    """

    mode: EntitledMode
    monthly_event_quota: int
    ends_at: datetime | None
    revision: int

    def holds(self, now: datetime) -> bool:
        """Whether it is not over at `now`."""
        return self.ends_at is None or now < self.ends_at


@dataclass(frozen=True, slots=True)
class Integration:
    """A publisher's source of measurements, as Audience keeps it. Its secret is not a part of it."""

    id: str
    organization_id: str
    project_id: str
    mode: AudienceMode
    retention_days: int
    core_key_id: str
    created_at: datetime
    secret_rotated_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class WithSecret:
    """An integration and the HMAC secret that it has from now on, which is told once."""

    integration: Integration
    hmac_secret: Secret = field(repr=False)


@dataclass(frozen=True, slots=True)
class RetentionChanged:
    """What another retention did: what it was, what it is, and how much was deleted for it."""

    integration_id: str
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


@dataclass(frozen=True, slots=True)
class CoreKeyReplaced:
    """Which key of Core's an integration trusts now."""

    integration_id: str
    core_key_id: str


@dataclass(frozen=True, slots=True)
class ModeUsage:
    """What was measured under one mode in a calendar month, and what measures now."""

    mode: AudienceMode
    events: int
    active_integrations: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report is to be about: up to `to_at`; None takes everything, back to the start of retention."""

    to_at: datetime
    from_at: datetime | None = None
    campaign_id: str | None = None
    xr_id: str | None = None
