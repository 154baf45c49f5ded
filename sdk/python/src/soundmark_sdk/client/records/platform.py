"""The settings of the platform, and the readiness of the SDK's release."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from soundmark_sdk.client.records.record import Record


@dataclass(frozen=True, slots=True)
class SecretStatus(Record):
    """Whether a credential is configured. Its value is never shown."""

    configured: bool
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Setting(Record):
    """The current value of a setting, and its source."""

    value: str | int | float | bool | None
    source: Literal["database", "environment", "default"]
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class PlatformSettings(Record):
    """All settings of the platform, by name."""

    secrets: Mapping[str, SecretStatus]
    configuration: Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class PlatformOrganization(Record):
    """An organisation, as administrators of the platform see it."""

    id: str
    name: str
    created_at: datetime
    deletion_requested_at: datetime | None
    suspended_at: datetime | None
    suspension_reason: str | None


@dataclass(frozen=True, slots=True)
class SuspendedOrganization(PlatformOrganization):
    """An organisation that was just suspended, and until when offline packs of it may still be answered from."""

    packs_valid_until: datetime | None


@dataclass(frozen=True, slots=True)
class AbuseReport(Record):
    """What a receiver reported about a Code. What people wrote is None once it was deleted."""

    id: str
    xr_id: str
    organization_id: str | None
    category: Literal["spam", "malware", "impersonation", "illegal", "other"]
    text: str | None = field(repr=False)
    contact: str | None = field(repr=False)
    status: Literal["open", "closed"]
    note: str | None = field(repr=False)
    created_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class SdkRelease(Record):
    """A release of the receivers' SDK, and the commit that it was built from."""

    version: str
    revision: str


@dataclass(frozen=True, slots=True)
class ReleaseGates(Record):
    """The conditions for a stable release."""

    available: bool
    store_uploaded: bool
    android_acoustic: bool
    ios_acoustic: bool
    stable_channel_signed: bool


@dataclass(frozen=True, slots=True)
class ReleaseReadiness(Record):
    """How far the receivers' SDK is from its stable release. `stable` is None until there is one."""

    computed_at: datetime
    preview: SdkRelease
    gates: ReleaseGates
    stable: SdkRelease | None


@dataclass(frozen=True, slots=True)
class SystemTest(Record):
    """What a test of a system found: `code` for programs, `reason` for people."""

    system: str
    ok: bool
    code: str
    reason: str
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class Job(Record):
    """A job of Core's worker that failed (`failed_at`), or that has run and runs again (`next_attempt_at`)."""

    id: str
    task: str
    state: str
    attempts: int
    failed_at: datetime | None
    next_attempt_at: datetime | None
