"""Audience integrations."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from soundmark_sdk.client.records.record import Record

AudienceMode: TypeAlias = Literal["demo", "contract", "self_service"]


@dataclass(frozen=True, slots=True)
class Integration(Record):
    """An Audience integration, without its secret. `core_key_id` names the key of Core that it trusts."""

    id: str
    organization_id: str
    project_id: str
    mode: AudienceMode
    retention_days: int
    status: Literal["active", "revoked"]
    core_key_id: str
    created_at: datetime
    secret_rotated_at: datetime | None
    revoked_at: datetime | None
    name: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class IntegrationWithSecret(Integration):
    """An integration with its HMAC secret, which the service shows only once."""

    hmac_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChangedRetention(Record):
    """A change of retention, and exactly how much it deleted."""

    integration_id: str
    previous_retention_days: int
    retention_days: int
    deleted_events: int
    deleted_integrity_days: int


@dataclass(frozen=True, slots=True)
class ReplacedCoreKey(Record):
    """The key of Core that an integration trusts now."""

    integration_id: str
    core_key_id: str
