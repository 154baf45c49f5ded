"""Webhook endpoints, and the events and deliveries that they get."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

from soundmark_sdk.client.records.record import Record

DeliveryStatus: TypeAlias = Literal["pending", "delivered", "failed"]


@dataclass(frozen=True, slots=True)
class WebhookEndpoint(Record):
    """An address that gets the events of a project, or of a whole organisation if `project_id` is None.

    `event_types` None means all. `disabled_reason` is why the service disabled it: it answered 410 (`gone`), or nothing
    but failures for five days (`failing`).
    """

    id: str
    organization_id: str
    project_id: str | None
    url: str
    event_types: tuple[str, ...] | None
    description: str | None
    enabled: bool
    disabled_reason: Literal["gone", "failing"] | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WebhookEndpointWithSecret(WebhookEndpoint):
    """An endpoint with its secret, which the service shows only once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class WebhookTest(Record):
    """What an endpoint answered to a test message: a status, or an error if there was no answer."""

    status_code: int | None
    duration_ms: int | float
    error: str | None


@dataclass(frozen=True, slots=True)
class WebhookDelivery(Record):
    """An event on its way to an endpoint. `next_attempt_at` is None once it is delivered or has failed."""

    id: str
    event_id: str
    event_type: str
    status: DeliveryStatus
    attempts: int
    last_status_code: int | None
    last_error: str | None
    next_attempt_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WebhookEvent(Record):
    """An event as it is sent to endpoints."""

    type: str
    timestamp: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WebhookReplay(Record):
    """How many new deliveries to an endpoint there are, one for each event."""

    replayed_count: int
