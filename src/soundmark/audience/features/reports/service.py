"""The question what an integration measured."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

import numpy as np

from soundmark.audience.context import Context
from soundmark.audience.domain.aggregation import TOKEN_MIN, Codes, Tally, ranges_of_tokens, tally
from soundmark.audience.domain.integration import Integration, Workspace
from soundmark.audience.domain.retention import first_kept_day
from soundmark.audience.problems import IntegrationNotFound, ReportTooLarge
from soundmark.audience.store import integrations, reports
from soundmark.audience.store.reports import DAY_MS, CodeNames, IntegrityCounts, Span
from soundmark.kit.ids import may_be_id
from soundmark.kit.postgres import Tx
from soundmark.kit.problems import DatabaseUnavailable, FieldError, ValidationFailed
from soundmark.wire.audience_report import DIMENSION_MAX

# Events that are counted at once: 32 bytes each, a few times over. Fewer would cost more searches in the index.
_AT_ONCE: Final = 250_000
# The first range is this share of all tokens, and says how many the others have to be.
_SAMPLES: Final = 256
_SAMPLED: Final = (TOKEN_MIN, TOKEN_MIN + 2**64 // _SAMPLES - 1)
_RANGES_MAX: Final = 100_000
_NOBODY_WAITS_AFTER_S: Final = 60.0  # The longest deadline that a private call may have (API v1, "Limits").
# No event occurs later than this from now: receivers' clocks may be ahead by minutes.
_AHEAD_MAX: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report is to be about; None takes everything, back to the start of retention and up to now."""

    from_at: datetime | None = None
    to_at: datetime | None = None
    campaign_id: str | None = None
    xr_id: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What was counted, from `from_at` up to `to_at`. `names` has every Code that is counted, by its place in `codes`.

    Every dimension has at most `DIMENSION_MAX` entries.
    """

    integration: Integration
    from_at: datetime
    to_at: datetime
    first_day: date
    counted: Tally
    names: dict[int, CodeNames]
    integrity_days: list[IntegrityCounts]


async def workspace_of(ctx: Context, integration_id: str) -> Workspace:
    """Whose an integration is, for the administration, which asks without knowing.

    Raises: IntegrationNotFound; DatabaseUnavailable.
    """
    if not may_be_id(integration_id):
        raise IntegrationNotFound
    workspace = await integrations.find_workspace(ctx.db, integration_id)
    if workspace is None:
        raise IntegrationNotFound
    return workspace


async def read_report(ctx: Context, workspace: Workspace, integration_id: str, wanted: Wanted) -> Report:
    """Count what an integration of the project recorded, as of one moment, whether it is revoked or not.

    What has aged out is not counted, deleted or not.

    Raises: IntegrationNotFound; ReportTooLarge; ValidationFailed where the period does not begin before it ends;
        DatabaseUnavailable, also where whoever asked has given up long ago.
    Source: API v1, "Report rules"; contract, section 6, "Report".
    """
    if not may_be_id(integration_id):
        raise IntegrationNotFound
    try:
        async with asyncio.timeout(_NOBODY_WAITS_AFTER_S):
            # Few at once: each takes two connections and two processors, and others want some of both.
            async with ctx.report_turns.turn(workspace.organization_id), ctx.db.snapshot() as tx:
                return await _counted(ctx, tx, workspace, integration_id, wanted)
    except TimeoutError:
        raise DatabaseUnavailable from None


async def _counted(ctx: Context, tx: Tx, workspace: Workspace, integration_id: str, wanted: Wanted) -> Report:
    integration = await integrations.find(tx, workspace, integration_id)
    if integration is None:
        raise IntegrationNotFound
    now = ctx.clock.now()
    from_at, to_at = _period(wanted, integration, now)
    kept_from = _midnight(first_kept_day(now, integration.retention_days))
    span = _span(max(from_at, kept_from), min(to_at, now + _AHEAD_MAX))
    number = await integrations.get_number(tx, workspace, integration_id)
    await reports.keep_to_index(tx)
    codes = await reports.get_codes(tx, number, campaign_id=wanted.campaign_id, xr_id=wanted.xr_id)
    is_narrowed = wanted.campaign_id is not None or wanted.xr_id is not None
    counted = await _Counting(ctx, tx, number, span, codes, is_narrowed=is_narrowed).all()
    _refuse_too_large(counted)
    return Report(
        integration=integration,
        from_at=from_at,
        to_at=to_at,
        first_day=span.first_day,
        counted=counted,
        names=await _names(tx, number, codes, counted),
        integrity_days=await reports.list_integrity_days(tx, number, first_day=span.first_day, last_day=span.last_day),
    )


@dataclass(frozen=True, slots=True)
class _Counting:
    """The counting of one report's events."""

    ctx: Context
    tx: Tx
    integration: int
    span: Span
    codes: Codes
    is_narrowed: bool

    async def all(self) -> Tally:
        """All that is to be counted, a range of tokens at a time, many of them on two connections."""
        if not len(self.codes.numbers):
            return tally([], days_count=self._days_count(), codes=self.codes)
        sample = await self._of_range(self.tx, _SAMPLED)
        expected = sample.events * (_SAMPLES - 1)
        count = min(max(1, -(-expected // _AT_ONCE)), _RANGES_MAX)
        ranges = iter(ranges_of_tokens(_SAMPLED[1] + 1, count))
        async with contextlib.AsyncExitStack() as stack:
            readers = [self.tx]
            if count > 1:
                # Alone it takes longer, and comes to the same.
                with contextlib.suppress(DatabaseUnavailable):
                    second = await stack.enter_async_context(self.ctx.db.beside(self.tx))
                    await reports.keep_to_index(second)
                    readers.append(second)
            tallies = await _all_of([self._of_ranges(tx, ranges) for tx in readers])
        return sum(tallies, start=sample)

    async def _of_ranges(self, tx: Tx, ranges: Iterator[tuple[int, int]]) -> Tally:
        """Those of `ranges` that nobody else has taken when it is their turn."""
        total = tally([], days_count=self._days_count(), codes=self.codes)
        for tokens in ranges:
            total += await self._of_range(tx, tokens)
        return total

    async def _of_range(self, tx: Tx, tokens: tuple[int, int]) -> Tally:
        numbers = [int(number) for number in self.codes.numbers] if self.is_narrowed else None
        days = await reports.list_events(tx, self.integration, self.span, tokens=tokens, codes=numbers)
        return await asyncio.to_thread(tally, days, days_count=self._days_count(), codes=self.codes)

    def _days_count(self) -> int:
        return max(1, len(self.span.days()))


async def _all_of(counting: list[Coroutine[Any, Any, Tally]]) -> list[Tally]:
    """The result of each; where one fails, all of them have ended when that is raised."""
    tasks = [asyncio.create_task(one) for one in counting]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _period(wanted: Wanted, integration: Integration, now: datetime) -> tuple[datetime, datetime]:
    """What the report says that it covers.

    Without an end up to now; without a beginning from the start of retention, or, of a time that has aged out as a
    whole, from where retention began at its end.

    Raises: ValidationFailed where it does not begin before it ends.
    """
    to_at = wanted.to_at or now.replace(microsecond=now.microsecond // 1000 * 1000)
    kept_from = _midnight(first_kept_day(now, integration.retention_days))
    if kept_from >= to_at:
        kept_from = _midnight(first_kept_day(to_at, integration.retention_days))
    from_at = wanted.from_at or kept_from
    if from_at >= to_at:
        raise ValidationFailed(errors=(FieldError("query", "/from", "must precede the end of the period"),))
    return from_at, to_at


def _span(from_at: datetime, to_at: datetime) -> Span:
    """The days that are read, for the moments from `from_at` up to `to_at`."""
    last_day, to_ms = to_at.date(), _ms_of_day(to_at)
    if to_ms == 0:
        last_day, to_ms = last_day - timedelta(days=1), DAY_MS
    return Span(from_at.date(), _ms_of_day(from_at), last_day, to_ms)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _ms_of_day(moment: datetime) -> int:
    return (moment - _midnight(moment.date())) // timedelta(milliseconds=1)


def _refuse_too_large(counted: Tally) -> None:
    """Refuse a report of which a dimension has more entries than it may hold.

    Raises: ReportTooLarge.
    """
    for entries in (counted.frequencies, counted.by_campaign.events, counted.by_code.events):
        if np.count_nonzero(entries) > DIMENSION_MAX:
            raise ReportTooLarge


async def _names(tx: Tx, integration: int, codes: Codes, counted: Tally) -> dict[int, CodeNames]:
    """What is at each place that was counted at."""
    places = {*counted.by_code.keys(), *counted.by_campaign.keys()}
    places_of = {int(codes.numbers[place]): place for place in places}
    found = await reports.list_code_names(tx, integration, list(places_of))
    return {places_of[names.number]: names for names in found}
