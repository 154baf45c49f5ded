"""The conditions under which Codes are issued. Nothing here reads the database or changes anything."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from soundmark.core.domain.codes.campaign import Campaign
from soundmark.core.domain.codes.issue_request import IssueRequest
from soundmark.core.domain.codes.quota import Quota
from soundmark.core.domain.tenancy.allowed_hosts import leads_elsewhere
from soundmark.core.problems import (
    AudienceUnavailable,
    CampaignArchived,
    CampaignNotFound,
    CampaignNotOpen,
    IntentNotCanonical,
    QuotaExceeded,
)
from soundmark.kit.crypto.canonical import NotCanonical, canonicalize
from soundmark.kit.http.responses.problems import FieldError, Problem, ValidationFailed
from soundmark.wire.private.problems import IntegrationNotFound, IntegrationRevoked

# The state of the requested integration according to Audience; "unknown" if Audience did not answer or was not asked.
IntegrationState = Literal["none_named", "usable", "revoked", "missing", "unknown"]

_INTEGRATION_PROBLEMS: Final[Mapping[IntegrationState, type[Problem]]] = {
    "revoked": IntegrationRevoked,
    "missing": IntegrationNotFound,
    "unknown": AudienceUnavailable,
}


def canonicalize_intent(intent: Mapping[str, object]) -> bytes:
    """Return the canonical bytes of an intent.

    Raises: IntentNotCanonical.
    """
    try:
        return canonicalize(intent)
    except NotCanonical as error:
        raise IntentNotCanonical(f"The intent {error}.", errors=(FieldError("body", "/intent", str(error)),)) from None


def require_allowed_link(intent: Mapping[str, Any], hosts: Sequence[str] | None) -> None:
    """Refuse an intent that leads to another host than its project allows.

    Raises: ValidationFailed.
    Source: contract, section 13.
    """
    if leads_elsewhere(intent, hosts):
        message = "must be an https address of a host that this project allows"
        raise ValidationFailed(errors=(FieldError("body", "/intent/resource/url", message),))


def require_issuable(
    request: IssueRequest, campaign: Campaign | None, integration: IntegrationState, quota: Quota
) -> None:
    """Refuse a request that may not be issued at the time of `quota`.

    `campaign` is the one that the request names; None if it does not exist.

    Raises: CampaignNotFound, CampaignArchived, CampaignNotOpen; IntegrationNotFound, IntegrationRevoked,
        AudienceUnavailable; ValidationFailed for an expiry that is not in the future; QuotaExceeded.
    Source: API v1, "Issuance ordering".
    """
    if request.campaign_id is not None:
        _require_open(campaign, request.project_id, quota.at)
    problem = _INTEGRATION_PROBLEMS.get(integration)
    if problem is not None:
        raise problem
    if request.expires_at <= quota.at:
        raise ValidationFailed(errors=(FieldError("body", "/expires_at", "must be in the future"),))
    if request.count > quota.remaining:
        seconds_left = quota.month.seconds_left(quota.at)
        raise QuotaExceeded(headers={"Retry-After": str(seconds_left), **quota_headers(quota)})


def quota_headers(quota: Quota) -> dict[str, str]:
    """Return the response headers that state the quota.

    Source: contract, section 3; draft-ietf-httpapi-ratelimit-headers.
    """
    return {
        "RateLimit-Policy": f'"codes";q={quota.monthly_quota}',
        "RateLimit": f'"codes";r={quota.remaining};t={quota.month.seconds_left(quota.at)}',
    }


def _require_open(campaign: Campaign | None, project_id: str, now: datetime) -> None:
    if campaign is None or campaign.project_id != project_id:
        raise CampaignNotFound
    if campaign.status == "archived":
        raise CampaignArchived
    if not campaign.is_open(now):
        raise CampaignNotOpen
