"""A service for a playout agent, in memory: it issues, revokes, refuses and cannot be reached, on command."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from soundmark_sdk.client import ApiProblem, ClientFailure, ServiceUnreachable

from soundmark.studio.play.records import CampaignState, CodeStatus, HeldCode, SourceCode, WantedCode
from support.processes.fake_clock import FakeClock
from support.studio.playout_lines import make_held

UNREACHABLE = ServiceUnreachable("Nothing answers at http://127.0.0.1:9 (connection refused).", was_sent=False)


def problem(status: int, code: str, *, retry_after_s: float | None = None) -> ApiProblem:
    """Return the refusal that a client gets."""
    return ApiProblem(status, code, "A detail that belongs in no log.", retry_after_s=retry_after_s)


class MemoryService:
    """The part of Core that an agent uses. `fault` meets every request, `issue_fault` only issuances."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.sources: dict[str, SourceCode] = {}
        self.campaigns: dict[str, CampaignState] = {}
        self.statuses: dict[str, CodeStatus] = {}
        self.issued: dict[str, HeldCode] = {}
        self.fault: ClientFailure | None = None
        self.issue_fault: ClientFailure | None = None
        self.revoked: list[str] = []
        self.issue_count = 0
        self.quota_left = 100

    def add(self, source: SourceCode) -> SourceCode:
        """Have an active Code."""
        self.sources[source.xr_id] = source
        self.statuses[source.xr_id] = "active"
        return source

    async def find_code(self, xr_id: str) -> tuple[CodeStatus, SourceCode | None]:
        """See `PlayoutService`."""
        self._check()
        if xr_id not in self.statuses:
            return "gone", None
        return self.statuses[xr_id], self.sources.get(xr_id)

    async def find_campaign(self, campaign_id: str) -> CampaignState | None:
        """See `PlayoutService`."""
        self._check()
        return self.campaigns.get(campaign_id)

    async def find_source(self, campaign_id: str, not_before: datetime | None) -> SourceCode | None:
        """See `PlayoutService`."""
        self._check()
        found = [
            source
            for source in self.sources.values()
            if source.campaign_id == campaign_id
            and self.statuses[source.xr_id] == "active"
            and (not_before is None or source.expires_at >= not_before)
        ]
        return max(found, key=lambda source: source.expires_at, default=None)

    async def count_quota_left(self, wanted: WantedCode) -> int:
        """See `PlayoutService`."""
        assert wanted.expires_at > self.clock.now()
        self._check()
        if self.issue_fault is not None:
            raise self.issue_fault
        return self.quota_left

    async def issue(self, wanted: WantedCode, idempotency_key: str) -> HeldCode:
        """See `PlayoutService`."""
        self._check()
        self.issue_count += 1
        if self.issue_fault is not None:
            raise self.issue_fault
        if idempotency_key not in self.issued:
            if self.quota_left == 0:
                raise problem(429, "quota_exceeded", retry_after_s=1e6)
            self.quota_left -= 1
            code = make_held(wanted, 100 + len(self.issued))
            self.issued[idempotency_key] = code
            self.statuses[code.xr_id] = "active"
            source = replace(wanted.source, xr_id=code.xr_id, frame=code.frame, expires_at=code.expires_at)
            self.sources[code.xr_id] = source
        return self.issued[idempotency_key]

    async def revoke(self, codes: Collection[HeldCode]) -> None:
        """See `PlayoutService`."""
        self._check()
        self.revoked += [code.xr_id for code in codes]
        self.statuses.update({code.xr_id: "revoked" for code in codes})

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault
