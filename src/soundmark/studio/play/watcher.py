"""Ask the service what has changed: statuses of Codes, dates of campaigns, and the Code of a campaign."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Final

from soundmark_sdk.client import ClientFailure

from soundmark.studio.play.journal import Journal
from soundmark.studio.play.playout import Line, Playout
from soundmark.studio.play.service import PlayoutService, failure_code, is_down, is_refused
from soundmark.studio.play.steady_clock import SteadyClock

# Stopping a campaign revokes its Codes, which is seen in the next round; its dates may be seen later.
CAMPAIGNS_EVERY_S: Final = 20.0


class Watcher:
    """Brings what the service says to a playout."""

    def __init__(self, playout: Playout, service: PlayoutService, clock: SteadyClock, journal: Journal) -> None:
        self._playout: Final = playout
        self._service: Final = service
        self._clock: Final = clock
        self._journal: Final = journal
        self._campaigns_due_s = clock.monotonic_s()
        self.is_reachable = False

    def look_at_campaigns_soon(self) -> None:
        """Ask about the campaigns in the next round: the service has just said something about one."""
        self._campaigns_due_s = self._clock.monotonic_s()

    async def run_round(self) -> ClientFailure | None:
        """Ask about everything once, and return a failure, if there was one: of several, one that says it is down."""
        now = self._clock.now()
        self._playout.pass_time(now)
        failures = await self._ask(self._look_at(xr_id) for xr_id in self._list_codes())
        # After the Codes: only a Code says to which campaign it belongs.
        failures += await self._ask(self._look_at_campaign(each) for each in self._list_campaigns())
        failures += await self._ask(self._find_source(line) for line in self._list_seeking())
        return self._judge(failures)

    def _list_codes(self) -> list[str]:
        unknown = [
            line.name
            for line in self._playout.lines
            if line.source is None and line.campaign_id is None and line.ended is None
        ]
        return unknown + self._playout.list_watched(self._clock.now())

    def _list_campaigns(self) -> list[str]:
        live = [line for line in self._playout.lines if line.ended is None and line.watched_campaign_id is not None]
        if self._clock.monotonic_s() >= self._campaigns_due_s:
            self._campaigns_due_s = self._clock.monotonic_s() + CAMPAIGNS_EVERY_S
        else:
            live = [line for line in live if line.campaign is None]
        return list(dict.fromkeys(line.watched_campaign_id for line in live if line.watched_campaign_id is not None))

    def _list_seeking(self) -> list[Line]:
        now = self._clock.now()
        return [line for line in self._playout.lines if line.source is None and line.campaign and line.is_open(now)]

    async def _ask(self, asking: Iterable[Awaitable[None]]) -> list[ClientFailure | None]:
        """Await the questions together, and return what each failed with, or None."""
        return list(await asyncio.gather(*(_catch(each) for each in asking)))

    async def _look_at(self, xr_id: str) -> None:
        status, source = await self._service.find_code(xr_id)
        for line in self._playout.lines:
            if line.name == xr_id and line.source is None:
                line.source = source
                if source is None:
                    line.ended = f"{xr_id} does not exist"
        self._playout.learn_status(xr_id, status)

    async def _look_at_campaign(self, campaign_id: str) -> None:
        self._playout.learn_campaign(campaign_id, await self._service.find_campaign(campaign_id))

    async def _find_source(self, line: Line) -> None:
        assert line.campaign_id is not None, "only a campaign's line looks for a source"
        source = await self._service.find_source(line.campaign_id, line.source_from)
        if source is not None and line.ended is None:
            line.source = source

    def _judge(self, outcomes: list[ClientFailure | None]) -> ClientFailure | None:
        """Decide from one round whether the service can be reached, and whether it refuses the credential."""
        if not outcomes:
            return None
        failures = [outcome for outcome in outcomes if outcome is not None]
        for failure in failures:
            self._journal.failures.labels(failure_code(failure)).inc()
        refused = next((failure for failure in failures if is_refused(failure)), None)
        if refused is not None:
            self._playout.refusal = f"the service refuses the key ({failure_code(refused)})"
        elif len(failures) < len(outcomes):
            self._playout.refusal = None
        down = next((failure for failure in failures if is_down(failure)), None)
        self.is_reachable = down is None
        return down or (failures[0] if failures else None)


async def _catch(asking: Awaitable[None]) -> ClientFailure | None:
    try:
        await asking
    except ClientFailure as failure:
        return failure
    return None
