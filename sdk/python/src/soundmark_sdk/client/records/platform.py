"""The settings of the platform."""

from collections.abc import Mapping
from dataclasses import dataclass
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
