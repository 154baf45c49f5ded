"""Platform settings as the database keeps them, and as they hold."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from soundmark.settings.registry import Value

SettingSource = Literal["database", "environment", "default"]


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A credential as the database keeps it."""

    name: str
    sealed: bytes
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StoredValue:
    """An override as the database keeps it; `value` is JSON."""

    name: str
    value: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SecretStatus:
    """What may be shown of a credential. `updated_at` is None where the database has none."""

    is_configured: bool
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """The value that holds and where it comes from. `value` is None where nothing sets it and there is no default."""

    value: Value | None
    source: SettingSource
    updated_at: datetime | None
