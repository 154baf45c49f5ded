"""Counting the events of an integration."""

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
from soundmark.audience.store import distribution, integrations, reports
from soundmark.audience.store.reports import DAY_MS, CodeNames, IntegrityCounts, Span
from soundmark.kit.http.responses.problems import DatabaseUnavailable, FieldError, ValidationFailed
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.ids import may_be_id
from soundmark.wire.audience_report import DIMENSION_MAX
from soundmark.wire.private.measurements import ReportQuery
from soundmark.wire.private.problems import IntegrationNotFound, ReportTooLarge

# Events that are counted together, at 32 bytes each, several times. Fewer would cost more searches in the index.
_AT_ONCE: Final = 250_000
# The first range is this share of all tokens; its count determines the number of further ranges.
_SAMPLES: Final = 256
_SAMPLED: Final = (TOKEN_MIN, TOKEN_MIN + 2**64 // _SAMPLES - 1)
_RANGES_MAX: Final = 100_000
# Events lie in the future by less than this: receivers' clocks may be minutes fast.
_AHEAD_MAX: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Report:
    """The counts from `from_at` up to `to_at`. `names` has every counted Code, by its place in `codes`.

    Every dimension has at most `DIMENSION_MAX` entries.
    """

    integration: Integration
    from_at: datetime
    to_at: datetime
    first_day: date
    counted: Tally
    names: dict[int, CodeNames]
    integrity_days: list[IntegrityCounts]


async def get_workspace(ctx: Context, integration_id: str) -> Workspace:
    """Return the project of an integration, for an administrator, who does not know it.

    Raises: IntegrationNotFound; DatabaseUnavailable.
    """
    if not may_be_id(integration_id):
        raise IntegrationNotFound
    workspace = await integrations.find_workspace(ctx.db, integration_id)
    if workspace is None:
        raise IntegrationNotFound
    return workspace


async def read_report(ctx: Context, workspace: Workspace, integration_id: str, query: ReportQuery) -> Report:
    """Count what an integration of the project recorded, as of one moment, whether it is revoked or not.

    Events older than the retention are not counted, even if they are not deleted yet. The caller's deadline ends the
    counting, so that callers who give up and retry do not queue behind their own requests.

    Raises: IntegrationNotFound; ReportTooLarge; ValidationFailed unless the period begins before it ends;
        DatabaseUnavailable.
    Source: API v1, "Report rules"; contract, section 6, "Report".
    """
    if not may_be_id(integration_id):
        raise IntegrationNotFound
    # Few at a time, because each uses two connections and two processors, and other requests need some of both.
    async with ctx.report_turns.turn(workspace.organization_id), ctx.db.snapshot() as tx:
        return await _count(ctx, tx, workspace, integration_id, query)


async def _count(ctx: Context, tx: Tx, workspace: Workspace, integration_id: str, query: ReportQuery) -> Report:
    integration = await integrations.find(tx, workspace, integration_id)
    if integration is None:
        raise IntegrationNotFound
    now = ctx.clock.now()
    from_at, to_at = _period(query, integration, now)
    kept_from = _midnight(first_kept_day(now, integration.retention_days))
    span = _span(max(from_at, kept_from), min(to_at, now + _AHEAD_MAX))
    number = await integrations.get_number(tx, workspace, integration_id)
    await reports.keep_to_index(tx)
    codes = await reports.get_codes(tx, number, campaign_id=query.campaign_id, xr_id=query.xr_id)
    is_narrowed = query.campaign_id is not None or query.xr_id is not None
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
        """Count all events, a range of tokens at a time; many ranges on two connections.

        Where the tables are distributed, a second connection would not see the same moment.
        """
        if not len(self.codes.numbers):
            return tally([], days_count=self._days_count(), codes=self.codes)
        sample = await self._of_range(self.tx, _SAMPLED)
        expected = sample.events * (_SAMPLES - 1)
        count = min(max(1, -(-expected // _AT_ONCE)), _RANGES_MAX)
        ranges = iter(ranges_of_tokens(_SAMPLED[1] + 1, count))
        async with contextlib.AsyncExitStack() as stack:
            readers = [self.tx]
            if count > 1 and not await distribution.is_distributed(self.tx):
                # Without the second connection it takes longer, with the same result.
                with contextlib.suppress(DatabaseUnavailable):
                    second = await stack.enter_async_context(self.ctx.db.beside(self.tx))
                    await reports.keep_to_index(second)
                    readers.append(second)
            tallies = await _all_of([self._of_ranges(tx, ranges) for tx in readers])
        return sum(tallies, start=sample)

    async def _of_ranges(self, tx: Tx, ranges: Iterator[tuple[int, int]]) -> Tally:
        """Count those of `ranges` that the other connection has not taken."""
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
    """Return the result of each; if one fails, end all of them before raising that failure."""
    tasks = [asyncio.create_task(one) for one in counting]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _period(query: ReportQuery, integration: Integration, now: datetime) -> tuple[datetime, datetime]:
    """Return the period that the report states.

    By default it ends now, and begins where the retention begins. If the end precedes the retention, it begins where
    the retention began at that end.

    Raises: ValidationFailed unless it begins before it ends.
    """
    to_at = query.to_at or now.replace(microsecond=now.microsecond // 1000 * 1000)
    kept_from = _midnight(first_kept_day(now, integration.retention_days))
    if kept_from >= to_at:
        kept_from = _midnight(first_kept_day(to_at, integration.retention_days))
    from_at = query.from_at or kept_from
    if from_at >= to_at:
        raise ValidationFailed(errors=(FieldError("query", "/from", "must precede the end of the period"),))
    return from_at, to_at


def _span(from_at: datetime, to_at: datetime) -> Span:
    """Return the days to read for the moments from `from_at` up to `to_at`."""
    last_day, to_ms = to_at.date(), _ms_of_day(to_at)
    if to_ms == 0:
        last_day, to_ms = last_day - timedelta(days=1), DAY_MS
    return Span(from_at.date(), _ms_of_day(from_at), last_day, to_ms)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)


def _ms_of_day(moment: datetime) -> int:
    return (moment - _midnight(moment.date())) // timedelta(milliseconds=1)


def _refuse_too_large(counted: Tally) -> None:
    """Refuse a report with a dimension that has too many entries.

    Raises: ReportTooLarge.
    """
    for entries in (counted.frequencies, counted.by_campaign.events, counted.by_code.events):
        if np.count_nonzero(entries) > DIMENSION_MAX:
            raise ReportTooLarge


async def _names(tx: Tx, integration: int, codes: Codes, counted: Tally) -> dict[int, CodeNames]:
    """Return the Code at each place that has a count."""
    places = {*counted.by_code.keys(), *counted.by_campaign.keys()}
    places_of = {int(codes.numbers[place]): place for place in places}
    found = await reports.list_code_names(tx, integration, list(places_of))
    return {places_of[names.number]: names for names in found}
