"""Platform settings as stored, and as they apply."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark.settings.registry import Value

SettingSource = Literal["database", "environment", "default"]


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A credential as stored."""

    name: str
    sealed: bytes
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StoredValue:
    """An override as stored; `value` is JSON."""

    name: str
    value: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SecretStatus:
    """What may be shown of a credential. `updated_at` is None if the database has none."""

    is_configured: bool
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """The value that applies, and its source. `value` is None if nothing sets it and there is no default."""

    value: Value | None
    source: SettingSource
    updated_at: datetime | None
