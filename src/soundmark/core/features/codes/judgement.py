"""What is asked to be issued, and whether it may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from soundmark.core.domain.campaign import Campaign
from soundmark.core.domain.quota import Quota
from soundmark.core.domain.receipt import Attempt, IssuanceRoute, Receipt
from soundmark.core.problems import (
    CampaignArchived,
    CampaignNotFound,
    CampaignNotOpen,
    IdempotencyConflict,
    QuotaExceeded,
)
from soundmark.kit.problems import FieldError, Location, Problem, ValidationFailed


@dataclass(frozen=True, slots=True)
class Issuance:
    """What a caller asks to be issued: one Code, or a batch of `count`. `integration_id` None: no Audience."""

    project_id: str
    campaign_id: str | None
    issuer: str
    expires_at: datetime
    intent: Mapping[str, Any]
    integration_id: str | None
    route: IssuanceRoute = "single"
    count: int = 1


def judge(wanted: Issuance, campaign: Campaign | None, quota: Quota, against: Problem | None) -> None:
    """Nothing stands against the issuance at the moment of `quota`, under the campaign that it names if that is there.

    `against` is what Audience has against measuring with the integration that it names.

    Raises: CampaignNotFound, CampaignArchived, CampaignNotOpen; `against`; ValidationFailed for an expiry that is not
        in the future; QuotaExceeded.
    Source: API v1, "Issuance ordering".
    """
    if wanted.campaign_id is not None:
        if campaign is None or campaign.project_id != wanted.project_id:
            raise CampaignNotFound
        if campaign.status == "archived":
            raise CampaignArchived
        if not campaign.is_open(quota.at):
            raise CampaignNotOpen
    if against is not None:
        raise against
    if wanted.expires_at <= quota.at:
        raise refused("body", "/expires_at", "must be in the future")
    if wanted.count > quota.remaining:
        seconds_left = quota.month.seconds_left(quota.at)
        raise QuotaExceeded(headers={"Retry-After": str(seconds_left), **quota_headers(quota)})


def recalled(receipt: Receipt | None, attempt: Attempt, now: datetime) -> bytes | None:
    """The answer that is remembered for the attempt.

    Raises: IdempotencyConflict.
    """
    if receipt is None or not receipt.is_kept(now):
        return None
    if not receipt.belongs_to(attempt):
        raise IdempotencyConflict
    return receipt.answer


def refused(location: Location, pointer: str, message: str) -> ValidationFailed:
    """That one part of the request is not what it must be."""
    # A new one each time: an exception keeps every frame that it passed, and what was asked in it.
    return ValidationFailed(errors=(FieldError(location, pointer, message),))


def no_key() -> ValidationFailed:
    """That what stands in the place of an idempotency key is none."""
    return refused("header", "/Idempotency-Key", "must be 16 to 128 characters of A-Za-z0-9._~-")


def quota_headers(quota: Quota) -> dict[str, str]:
    """What an issuance says of the quota. Source: contract, section 3; draft-ietf-httpapi-ratelimit-headers."""
    return {
        "RateLimit-Policy": f'"codes";q={quota.monthly_quota}',
        "RateLimit": f'"codes";r={quota.remaining};t={quota.month.seconds_left(quota.at)}',
    }
