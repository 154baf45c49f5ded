"""The loops in the worker that let the log grow, have it cosigned, and watch it. Any number of workers may run them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from soundmark.core.context import Context
from soundmark.core.features.log.integration.sequencing import integrate_some
from soundmark.core.features.log.integration.witnessing import Witnesses
from soundmark.core.live.log_state import READ_EVERY_S, read_log_state
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.postgres.notifications import Listener
from soundmark.kit.tasks import running, wait_for_event

GATHER_S: Final = 1.0  # What comes within it shares a checkpoint. The contract allows 5 s from a commit to its proof.
# While something is found, and for some time after that. Processes notify a moment after they committed something.
_LOOK_EVERY_S: Final = 1.0
_LOOK_ON_S: Final = 10.0
_LOOK_IDLE_S: Final = 30.0  # While notifications arrive.
_ASK_AGAIN_S: Final = 10.0
_REPORT_EVERY_S: Final = 60.0
_TROUBLE_S: Final = 1.0

_log: Final = structlog.get_logger()


class LogIntegrator:
    """Lets the log grow until cancelled. A failing database only makes it wait."""

    def __init__(self, ctx: Context) -> None:
        self._ctx: Final = ctx
        self._witnesses: Final = Witnesses(ctx)
        self._queued: Final = asyncio.Event()
        self._signed: Final = asyncio.Event()
        self._unset: Final = asyncio.Event()
        self._listener: Final = Listener(ctx.db, {"log_queue": self._queued})
        self._looks_until_s = float("-inf")
        self._is_missing = False
        self._reported_at_s = float("-inf")
        self._known_trouble: Final[dict[str, type[Exception]]] = {}

    async def keep_integrating(self) -> None:
        """Run the loops until cancelled."""
        try:
            async with running("log-notifications", self._listener.keep_listening()):
                await asyncio.gather(
                    self._keep("integrate", self._integrate, self._pause_of_integration, self._queued),
                    self._keep("witness", self.ask_once, self._pause_of_asking, self._signed),
                    self._keep("watch", self.watch_once, lambda: READ_EVERY_S, self._unset),
                )
        finally:
            await self._witnesses.cancel()

    async def integrate_once(self) -> int:
        """Let everything that waits enter the tree; return how many entries that were.

        Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken.
        """
        added_count, has_more = 0, True
        while has_more:
            done = await integrate_some(self._ctx)
            added_count, has_more = added_count + done.added_count, done.has_more
            if done.added_count:
                self._signed.set()
        return added_count

    async def ask_once(self) -> None:
        """Ask the witnesses about the newest checkpoint.

        Raises: DatabaseUnavailable.
        """
        self._is_missing = await self._witnesses.ask_about_newest()

    async def finish_asking(self) -> None:
        """Wait for the witnesses that were asked, and that nobody waited for."""
        await self._witnesses.finish()

    async def watch_once(self) -> None:
        """Note the log's state for the metrics, report a stopped log once a minute, and confirm a restored one.

        Raises: DatabaseUnavailable.
        """
        reason, waiting_count = await read_log_state(self._ctx.db)
        if reason == "restored" and await self._witnesses.confirm_restored():
            reason, waiting_count = await read_log_state(self._ctx.db)
            self._queued.set()
        now_s = self._ctx.clock.monotonic_s()
        if reason is not None and now_s - self._reported_at_s >= _REPORT_EVERY_S:
            self._reported_at_s = now_s
            _log.error("log_stopped", reason=reason, waiting=waiting_count)

    async def _integrate(self) -> None:
        # Before the pause: what comes during it is found by this look.
        await asyncio.sleep(GATHER_S)
        if await self.integrate_once():
            self._looks_until_s = self._ctx.clock.monotonic_s() + _LOOK_ON_S

    def _pause_of_integration(self) -> float:
        is_busy = self._ctx.clock.monotonic_s() < self._looks_until_s
        return _LOOK_EVERY_S if is_busy or not self._listener.is_listening else _LOOK_IDLE_S

    def _pause_of_asking(self) -> float:
        return _ASK_AGAIN_S if self._is_missing else _LOOK_IDLE_S

    async def _keep(
        self, name: str, work: Callable[[], Awaitable[None]], pause_s: Callable[[], float], wake: asyncio.Event
    ) -> None:
        """Repeat `work`. A failure is logged once, until there is another or none."""
        while True:
            wake.clear()
            try:
                await work()
            except DatabaseUnavailable:
                await asyncio.sleep(_TROUBLE_S)  # Readiness and every request report it.
                wake.set()
            except Exception as error:  # noqa: BLE001 - if a loop ended, the log would stop growing
                if self._known_trouble.get(name) is not type(error):
                    self._known_trouble[name] = type(error)
                    _log.error("log_integrator_failed", loop=name, error=type(error).__name__, exc_info=error)
                await asyncio.sleep(_TROUBLE_S)
            else:
                self._known_trouble.pop(name, None)
            await wait_for_event(wake, pause_s())
