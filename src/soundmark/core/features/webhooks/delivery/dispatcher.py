"""The dispatcher: a loop in the worker that claims due deliveries, attempts them and stores what followed.

No transaction is open during an attempt. A claim is a lease in the delivery's row, so the deliveries of a worker that
was killed are attempted again once it has ended, and several workers share the work.
"""

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final, Literal, TypeAlias

import structlog
from prometheus_client import Counter, Gauge

from soundmark.core.context import Context
from soundmark.core.domain.webhooks.attempt import (
    INTERNAL_ERROR,
    LEASE,
    TIMEOUT_S,
    AttemptOutcome,
    ClaimedDelivery,
    conclude,
)
from soundmark.core.features.webhooks.delivery.lanes import Lanes
from soundmark.core.features.webhooks.delivery.sending import attempt
from soundmark.core.features.webhooks.delivery.storing import store_outcomes
from soundmark.core.store.webhooks import dispatch
from soundmark.core.store.webhooks.dispatch import Backlog
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.database import EVERY_TENANT
from soundmark.kit.postgres.notifications import Listener
from soundmark.kit.tasks import cancel_and_wait, running, wait_for_event
from soundmark.kit.tracing.spans import enter_job

AttemptResult = Literal["delivered", "retried", "failed"]

_attempts: Final = Counter("soundmark_webhook_attempts_total", "Attempts to deliver an event, by outcome.", ["outcome"])
for _outcome in ("delivered", "retried", "failed"):
    _attempts.labels(_outcome)  # Exported as zero from the start.
_pending: Final = Gauge("soundmark_webhook_deliveries_pending", "Deliveries that are neither delivered nor failed.")
_oldest: Final = Gauge("soundmark_webhook_oldest_pending_seconds", "The age of the oldest pending delivery.")
_overdue: Final = Gauge("soundmark_webhook_overdue_seconds", "How long the oldest due delivery has waited.")


def count_attempt(outcome: AttemptOutcome) -> None:
    """Count one attempt."""
    result: AttemptResult = "retried" if outcome.status == "pending" else outcome.status
    _attempts.labels(result).inc()


def note_backlog(backlog: Backlog, *, now: datetime) -> None:
    """Note the pending deliveries of all organisations."""
    _pending.set(backlog.pending_count)
    for gauge, since in ((_oldest, backlog.oldest_created_at), (_overdue, backlog.due_since)):
        gauge.set(0 if since is None else max(0.0, (now - since).total_seconds()))


FanOut: TypeAlias = Callable[[Context], Awaitable[int]]

IDLE_S: Final = 0.2  # Between two looks while something is due, or while no notification would arrive.
_LOOK_EVERY_S: Final = 30.0  # While notifications arrive.
_GATHER_S: Final = 0.05  # Attempts that end within it are stored together.
_TROUBLE_S: Final = 1.0
_WATCH_EVERY_S: Final = 15.0
# How long attempts that are under way may take when the worker stops. Others may be cut off: the message is sent again.
STOP_S: Final = 3.0
_ENDPOINTS_MAX: Final = 500
_UNDELIVERABLE_MAX: Final = 1000
_TENANTS_MAX: Final = 100
_log: Final = structlog.get_logger()


@contextlib.asynccontextmanager
async def dispatching(ctx: Context, fan_out: FanOut) -> AsyncIterator[None]:
    """Turn acts into deliveries with `fan_out`, and deliver them, until the block ends.

    Then attempts under way have `STOP_S` to end, and what is not delivered is given back to other workers.
    """
    dispatcher = Dispatcher(ctx, fan_out)
    running = asyncio.create_task(dispatcher.run(), name="webhook-dispatcher")
    try:
        yield
    finally:
        dispatcher.stop()
        await asyncio.wait([running], timeout=2 * STOP_S)
        await cancel_and_wait(running)


class Dispatcher:
    """Delivers events until it is stopped. A failing database only makes it wait."""

    def __init__(self, ctx: Context, fan_out: FanOut) -> None:
        self._ctx: Final = ctx
        self._fan_out: Final = fan_out
        self._lanes: Final = Lanes()
        self._attempts: Final[set[asyncio.Task[None]]] = set()
        self._outcomes: list[AttemptOutcome] = []
        self._unattempted: list[ClaimedDelivery] = []
        self._after = ("", "")
        self._next_due_at: datetime | None = None
        self._wake: Final = asyncio.Event()
        self._wake_fan_out: Final = asyncio.Event()
        self._stopping: Final = asyncio.Event()
        self._listener: Final = Listener(ctx.db, {"webhook_acts": self._wake_fan_out, "webhook_deliveries": self._wake})
        self._known_trouble: Final[dict[str, type[Exception]]] = {}

    def stop(self) -> None:
        """End the loops, after what they are doing at the moment."""
        for event in (self._stopping, self._wake, self._wake_fan_out):
            event.set()

    async def run(self) -> None:
        """Deliver until `stop`."""
        async with running("webhook-notifications", self._listener.keep_listening()):
            await asyncio.gather(
                self._keep("fan_out", self._fan_out_once, self._pause_of_fan_out, self._wake_fan_out),
                self._keep("dispatch", self._dispatch, self._pause_of_dispatch, self._wake),
                self._keep("watch", self.watch_once, lambda: _WATCH_EVERY_S, self._stopping),
            )
        await self._give_back()

    async def dispatch_once(self) -> bool:
        """Store what followed from attempts, claim due deliveries, and begin attempts; return whether more may be due.

        Raises: DatabaseUnavailable.
        """
        self._begin_attempts()
        await self._store()
        has_more = await self._claim()
        self._begin_attempts()
        return has_more

    async def finish_attempts(self) -> None:
        """Wait until no attempt is under way, and store what followed from them.

        Raises: DatabaseUnavailable.
        """
        while self._attempts:
            await asyncio.wait(self._attempts)
            self._begin_attempts()
        await self._store()

    async def _keep(
        self, name: str, work: Callable[[], Awaitable[bool]], pause_s: Callable[[], float], wake: asyncio.Event
    ) -> None:
        """Repeat `work`, at once while it returns true. A failure is logged once, until there is another or none."""
        while not self._stopping.is_set():
            try:
                has_more = await work()
            except DatabaseUnavailable:
                await wait_for_event(self._stopping, _TROUBLE_S)  # Readiness and every request report it.
            except Exception as error:  # noqa: BLE001 - if a loop ended, deliveries would stop
                if self._known_trouble.get(name) is not type(error):
                    self._known_trouble[name] = type(error)
                    _log.error("webhook_dispatcher_failed", loop=name, error=type(error).__name__, exc_info=error)
                await wait_for_event(self._stopping, _TROUBLE_S)
            else:
                self._known_trouble.pop(name, None)
                await wait_for_event(wake, 0 if has_more else pause_s())

    def _pause_of_fan_out(self) -> float:
        return _LOOK_EVERY_S if self._listener.is_listening else IDLE_S

    def _pause_of_dispatch(self) -> float:
        """Return the seconds until the next attempt is due, as far as the last look knows."""
        if not self._listener.is_listening:
            return IDLE_S
        if self._next_due_at is None:
            return _LOOK_EVERY_S
        return min(max((self._next_due_at - self._ctx.clock.now()).total_seconds(), IDLE_S), _LOOK_EVERY_S)

    async def _dispatch(self) -> bool:
        if self._wake.is_set():
            await wait_for_event(self._stopping, _GATHER_S)
            self._wake.clear()
        return await self.dispatch_once()

    async def _fan_out_once(self) -> bool:
        self._wake_fan_out.clear()
        count = await self._fan_out(self._ctx)
        if count:
            self._wake.set()
        return count > 0

    async def _claim(self) -> bool:
        ctx = self._ctx
        now = ctx.clock.now()
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            waiting = await dispatch.list_waiting(tx, after=self._after, limit=_ENDPOINTS_MAX)
        due_at = [endpoint.next_attempt_at for endpoint in waiting]
        if self._after != ("", "") and self._next_due_at is not None:
            due_at.append(self._next_due_at)  # Of the endpoints before these.
        self._next_due_at = min(due_at, default=None)
        has_more = len(waiting) == _ENDPOINTS_MAX
        self._after = (waiting[-1].organization_id, waiting[-1].endpoint_id) if has_more else ("", "")
        self._lanes.forget_idle()
        due = [endpoint for endpoint in waiting if endpoint.next_attempt_at <= now]
        self._lanes.expect(len({endpoint.organization_id for endpoint in due}))
        by_tenant = [list(endpoints) for _, endpoints in groupby(due, key=attrgetter("organization_id"))]
        for endpoints in sorted(by_tenant, key=len):  # What begins many attempts delays what follows.
            has_more |= await self._claim_of(endpoints[0].organization_id, endpoints)
        return has_more

    async def _claim_of(self, organization_id: str, endpoints: list[dispatch.WaitingEndpoint]) -> bool:
        """Claim due deliveries of one organisation's endpoints; return whether there may be more for them."""
        ctx = self._ctx
        enabled = [each for each in endpoints if each.is_enabled]
        rooms = self._lanes.divide_room(enabled) if enabled else {}
        if not rooms and len(enabled) == len(endpoints):
            return False
        undeliverable_count = 0
        claimed: list[ClaimedDelivery] = []
        now = ctx.clock.now()
        async with ctx.db.transaction(tenant=organization_id) as tx:
            for endpoint in endpoints:
                if not endpoint.is_enabled:
                    undeliverable_count += await dispatch.update_undeliverable(
                        tx, organization_id, endpoint.endpoint_id, now=now, limit=_UNDELIVERABLE_MAX
                    )
            if rooms:
                claimed = await dispatch.update_claimed(tx, organization_id, rooms, now=now, lease_until=now + LEASE)
        self._lanes.add(claimed)
        self._begin_attempts()
        return undeliverable_count >= _UNDELIVERABLE_MAX

    def _begin_attempts(self) -> None:
        while not self._stopping.is_set() and (delivery := self._lanes.start_next()) is not None:
            task = asyncio.create_task(self._attempt(delivery))
            self._attempts.add(task)
            task.add_done_callback(self._attempts.discard)

    async def _attempt(self, delivery: ClaimedDelivery) -> None:
        """Attempt a delivery, unless its lease ends too early; note what followed, and begin the next attempt."""
        ctx, began_s, response = self._ctx, self._ctx.clock.monotonic_s(), None
        try:
            if delivery.lease_until - ctx.clock.now() > timedelta(seconds=TIMEOUT_S):
                response = await self._find_response(delivery)
        finally:
            outcome = None
            if response is None:
                self._unattempted.append(delivery)
            else:
                outcome = conclude(delivery, response, now=ctx.clock.now(), entropy=ctx.entropy)
                self._outcomes.append(outcome)
            duration_s = math.inf if outcome is None else ctx.clock.monotonic_s() - began_s
            self._lanes.end(delivery, is_success=outcome is None or outcome.is_success, duration_s=duration_s)
            self._wake.set()
            self._begin_attempts()

    async def _find_response(self, delivery: ClaimedDelivery) -> int | str:
        with enter_job("webhook", "consumer", self._ctx.entropy, delivery.traceparent) as place:
            place.note({"soundmark.delivery_id": delivery.id})
            try:
                return await attempt(self._ctx, delivery)
            except Exception as error:  # noqa: BLE001 - such as a secret that cannot be unsealed; others are not affected
                _log.error("webhook_not_attempted", delivery_id=delivery.id, error=type(error).__name__, exc_info=error)
                return INTERNAL_ERROR

    async def _store(self) -> None:
        """Store what followed from attempts, and give back what was not attempted.

        Raises: DatabaseUnavailable, and keeps what it has not stored.
        """
        by_tenant: dict[str, list[AttemptOutcome]] = defaultdict(list)
        outcomes, self._outcomes = self._outcomes, []
        for outcome in outcomes:
            by_tenant[outcome.delivery.organization_id].append(outcome)
        try:
            while by_tenant:
                organization_id, some = next(iter(by_tenant.items()))
                await store_outcomes(self._ctx, organization_id, some)
                del by_tenant[organization_id]
                for outcome in some:
                    count_attempt(outcome)
        except DatabaseUnavailable:
            self._outcomes += [outcome for some in by_tenant.values() for outcome in some]
            raise
        await self._release()

    async def _release(self) -> None:
        """Raises: DatabaseUnavailable."""
        unattempted = sorted(self._unattempted, key=attrgetter("organization_id", "lease_until"))
        self._unattempted = []  # What is lost here is attempted when its lease has ended.
        for (organization_id, lease_until), some in groupby(
            unattempted, key=attrgetter("organization_id", "lease_until")
        ):
            async with self._ctx.db.transaction(tenant=organization_id) as tx:
                await dispatch.update_released(
                    tx,
                    organization_id,
                    [delivery.id for delivery in some],
                    lease_until=lease_until,
                    now=self._ctx.clock.now(),
                )
                await dispatch.notify_due(tx)

    async def watch_once(self) -> bool:
        """Note the backlog for the metrics, and make deliveries due that a clock which was set back would keep waiting.

        Raises: DatabaseUnavailable.
        """
        ctx, now = self._ctx, self._ctx.clock.now()
        async with ctx.db.transaction(tenant=EVERY_TENANT) as tx:
            note_backlog(await dispatch.find_backlog(tx, now=now), now=now)
            postponed = await dispatch.list_postponed_tenants(tx, now=now, limit=_TENANTS_MAX)
        for organization_id in postponed:
            async with ctx.db.transaction(tenant=organization_id) as tx:
                count = await dispatch.update_postponed(tx, organization_id, now=now)
            _log.warning("webhook_deliveries_postponed", organization_id=organization_id, count=count)
        return False

    async def _give_back(self) -> None:
        """End all attempts, store what followed from them, and give back the rest."""
        self._unattempted += self._lanes.take_queued()
        if self._attempts:
            await asyncio.wait(self._attempts, timeout=STOP_S)
        for task in list(self._attempts):
            await cancel_and_wait(task)
        with contextlib.suppress(DatabaseUnavailable):
            await self._store()
