"""What an agent asks of Core's API, through the SDK's asynchronous client."""

from collections.abc import Collection
from datetime import datetime
from typing import Final, Protocol

from soundmark_sdk.client import ApiProblem, AsyncClient, ClientFailure, CodeFilters, CodeOrder, IssueRequest
from soundmark_sdk.client.records import Campaign, Code, ListedCode

from soundmark.studio.play.records import CampaignState, CodeStatus, HeldCode, SourceCode, WantedCode

_REVOKED_AT_ONCE_MAX: Final = 100  # API v1, "Limits".
_GONE_STATUSES: Final = frozenset({404, 410})
_REFUSED_STATUSES: Final = frozenset({401, 403})
_SERVER_ERROR: Final = 500
_UNKNOWN: Final = "unknown"  # The code of an answer that is no problem document, such as a proxy's page.


class PlayoutService(Protocol):
    """The part of the service that an agent uses. Every method raises ClientFailure."""

    async def find_code(self, xr_id: str) -> tuple[CodeStatus, SourceCode | None]:
        """Return a Code's status, and the Code unless it is gone."""
        ...

    async def find_campaign(self, campaign_id: str) -> CampaignState | None:
        """Return the state of a campaign, or None if it does not exist."""
        ...

    async def find_source(self, campaign_id: str, not_before: datetime | None) -> SourceCode | None:
        """Return the active Code of a campaign that expires last, and not before `not_before`; of equals the newest."""
        ...

    async def count_quota_left(self, wanted: WantedCode) -> int:
        """Return how many Codes the month's quota has left, if Codes such as this one may be issued at all."""
        ...

    async def issue(self, wanted: WantedCode, idempotency_key: str) -> HeldCode:
        """Issue a Code for a slot. The same request with the same key returns the same Code for 24 hours."""
        ...

    async def revoke(self, codes: Collection[HeldCode]) -> None:
        """Revoke Codes; those that the service does not have are none to revoke."""
        ...


class CoreService:
    """The service as its API has it."""

    def __init__(self, client: AsyncClient) -> None:
        self._client: Final = client

    async def find_code(self, xr_id: str) -> tuple[CodeStatus, SourceCode | None]:
        """See `PlayoutService`."""
        try:
            code = await self._client.codes.show(xr_id)
        except ApiProblem as problem:
            if is_gone(problem):
                return "gone", None
            raise
        return code.status, _make_source(code)

    async def find_campaign(self, campaign_id: str) -> CampaignState | None:
        """See `PlayoutService`."""
        try:
            campaign = (await self._client.campaigns.summary(campaign_id)).campaign
        except ApiProblem as problem:
            if is_gone(problem):
                return None
            raise
        return _make_campaign_state(campaign)

    async def find_source(self, campaign_id: str, not_before: datetime | None) -> SourceCode | None:
        """See `PlayoutService`."""
        listed = self._client.codes.list(
            CodeFilters(campaign_id=campaign_id, status="active"),
            order=CodeOrder(sort="expires_at"),
            include_intent=True,
        )
        newest: ListedCode | None = None
        async for code in listed:
            if (not_before is not None and code.expires_at < not_before) or (
                newest is not None and code.expires_at < newest.expires_at
            ):
                break
            if newest is None or code.issued_at > newest.issued_at:
                newest = code
        return None if newest is None else _make_source(newest)

    async def count_quota_left(self, wanted: WantedCode) -> int:
        """See `PlayoutService`."""
        return (await self._client.codes.dry_run(_make_request(wanted))).quota_remaining

    async def issue(self, wanted: WantedCode, idempotency_key: str) -> HeldCode:
        """See `PlayoutService`."""
        code = await self._client.codes.issue(_make_request(wanted), idempotency_key=idempotency_key)
        return HeldCode(
            code.xr_id, code.broadcast_frame, code.organization_id, code.project_id, wanted.slot, code.expires_at
        )

    async def revoke(self, codes: Collection[HeldCode]) -> None:
        """See `PlayoutService`."""
        by_project: dict[tuple[str, str], list[str]] = {}
        for code in codes:
            by_project.setdefault((code.organization_id, code.project_id), []).append(code.xr_id)
        for (organization_id, project_id), xr_ids in by_project.items():
            for begin in range(0, len(xr_ids), _REVOKED_AT_ONCE_MAX):
                try:
                    await self._client.codes.revoke_batch(
                        xr_ids[begin : begin + _REVOKED_AT_ONCE_MAX],
                        organization_id=organization_id,
                        project_id=project_id,
                    )
                except ApiProblem as problem:
                    if not is_gone(problem):
                        raise


def is_gone(problem: ApiProblem) -> bool:
    """Return whether the service says that what was asked for does not exist. A proxy's page says nothing."""
    return problem.status in _GONE_STATUSES and problem.code != _UNKNOWN


def is_refused(failure: ClientFailure) -> bool:
    """Return whether the service refuses the credential: it is revoked, expired, or lacks a scope."""
    return isinstance(failure, ApiProblem) and failure.status in _REFUSED_STATUSES and failure.code != _UNKNOWN


def failure_code(failure: ClientFailure) -> str:
    """Return a failure as a label of a metric: the code of a problem, or `unreachable`."""
    return failure.code if isinstance(failure, ApiProblem) else "unreachable"


def describe_failure(failure: ClientFailure) -> str:
    """Return a failure in words that hold nothing of the service's own text but the code of its problem."""
    return f"{failure.code} ({failure.status})" if isinstance(failure, ApiProblem) else str(failure).removesuffix(".")


def is_down(failure: ClientFailure) -> bool:
    """Return whether the service gave no answer to go by."""
    return not isinstance(failure, ApiProblem) or failure.status >= _SERVER_ERROR


def _make_request(wanted: WantedCode) -> IssueRequest:
    source = wanted.source
    return IssueRequest(
        issuer=source.issuer,
        expires_at=wanted.expires_at,
        intent=source.intent,
        campaign_id=source.campaign_id,
        audience_integration_id=source.integration_id,
        organization_id=source.organization_id,
        project_id=source.project_id,
    )


def _make_source(code: Code | ListedCode) -> SourceCode:
    assert code.intent is not None, "the intent was asked for"
    return SourceCode(
        code.xr_id,
        code.broadcast_frame,
        code.organization_id,
        code.project_id,
        code.campaign_id,
        code.issuer,
        code.audience_integration_id,
        code.expires_at,
        code.intent,
    )


def _make_campaign_state(campaign: Campaign) -> CampaignState:
    return CampaignState(campaign.starts_at, campaign.ends_at, campaign.status == "archived")
