"""A request to issue Codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from soundmark.core.domain.codes.receipt import IssuanceRoute, KeyedRequest

BATCH_MAX: Final = 100  # API v1, "Limits".


@dataclass(frozen=True, slots=True)
class IssueRequest:
    """A request for one Code, or for a batch of `count` Codes that differ only in their ids and tokens.

    `intent` is the parsed JSON. `integration_id` is None if the Codes are not measured, and `keyed` is None if the
    request has no idempotency key.
    """

    project_id: str
    campaign_id: str | None
    issuer: str
    expires_at: datetime
    intent: Mapping[str, Any]
    integration_id: str | None
    route: IssuanceRoute
    count: int
    keyed: KeyedRequest | None
