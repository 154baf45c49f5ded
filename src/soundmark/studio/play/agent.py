"""Run a playout: ask the service, issue ahead, keep the state, and write the sound."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Final

from soundmark_sdk.client import ClientFailure

from soundmark.studio.play.journal import Health, Journal
from soundmark.studio.play.outputs import Output, OutputEnded, OutputLost
from soundmark.studio.play.player import Player
from soundmark.studio.play.playout import Playout
from soundmark.studio.play.service import PlayoutService, describe_failure, is_refused
from soundmark.studio.play.state_file import HeldLine, SavedState, StateFile
from soundmark.studio.play.steady_clock import SteadyClock
from soundmark.studio.play.supplier import Supplier
from soundmark.studio.play.watcher import Watcher

# A revoked Code stops within 5 s: after this pause, one request, and the sound that the output has taken already.
WATCH_EVERY_S: Final = 1.5
SUPPLY_EVERY_S: Final = 1.0
REOPEN_EVERY_S: Final = 3.0
_FINISH_S: Final = 10.0


class PlayRefused(Exception):
    """The agent cannot begin or go on, for the reason in the message."""


class Agent:
    """A playout with what it uses. Its loops share one event loop, so nothing here is locked."""

    def __init__(
        self,
        playout: Playout,
        player: Player,
        service: PlayoutService,
        watcher: Watcher,
        supplier: Supplier,
        output: Output,
        state_file: StateFile,
        *,
        saved: SavedState,
        clock: SteadyClock,
        journal: Journal,
    ) -> None:
        self._playout: Final = playout
        self._player: Final = player
        self._service: Final = service
        self._watcher: Final = watcher
        self._supplier: Final = supplier
        self._output: Final = output
        self._state_file: Final = state_file
        self._clock: Final = clock
        self._journal: Final = journal
        self._saved = saved
        self._output_fault: str | None = None
        self._has_sounded = False
        self._announced: Final[deque[str]] = deque(maxlen=len(playout.lines))

    async def begin(self) -> None:
        """Learn what there is to play, and open the output. Without the service, what an earlier run held has to do.

        Raises: PlayRefused. Nothing was issued then, and unless the output is at fault, no file was overwritten.
        """
        failure = await self._watcher.run_round()
        if self._playout.refusal is not None:
            raise PlayRefused(self._playout.refusal)
        if self._playout.is_over:
            raise PlayRefused(self._explain_end())
        if failure is not None and not any(line.source is not None for line in self._playout.lines):
            raise PlayRefused(f"{describe_failure(failure)}; nothing is held from an earlier run")
        self._note_service(failure)
        await self._state_quota()
        try:
            await self._output.open()
        except (OutputLost, OutputEnded) as fault:
            raise PlayRefused(str(fault)) from None
        try:
            self._save()
        except OSError as error:
            raise PlayRefused(f"the state cannot be saved: {error.strerror}") from None
        await self.supply()

    async def _state_quota(self) -> None:
        """Say what a rotation will use of the quota.

        Raises: PlayRefused if the credential may not issue.
        """
        rotation, schedule, now = self._playout.rotation, self._playout.schedule, self._clock.now()
        wanted = next(self._playout.list_wanted(schedule.find_opening(now)), None)
        if wanted is None or rotation is None:
            return
        try:
            left = await self._service.count_quota_left(wanted)
        except ClientFailure as failure:
            if is_refused(failure):
                raise PlayRefused(f"the key may not issue Codes: {describe_failure(failure)}") from None
            return
        a_day = len(self._playout.lines) * rotation.count_slots_a_day(now, schedule)
        self._journal.say("quota", f"this issues {a_day} Codes a day; {left} are left of this month's quota")

    async def run(self) -> None:
        """Play until everything has ended.

        Raises: PlayRefused when the output is gone. What is held stays in the state, for a supervisor that starts the
            agent again: were it revoked each time, restarts would use up the quota.
        """
        loops = [
            asyncio.ensure_future(loop)
            for loop in (
                _repeat(self.watch, WATCH_EVERY_S),
                _repeat(self.supply, SUPPLY_EVERY_S),
                self._sound(),
            )
        ]
        try:
            done, _ = await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
            for loop in done:
                loop.result()
        except OutputEnded as ended:
            raise PlayRefused(str(ended)) from None
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
        self._journal.say("end", f"ended: {self._explain_end()}")

    async def finish(self) -> None:
        """Stop the sound, and revoke what was issued ahead and never sounded.

        What cannot be revoked in ten seconds is kept for the next start, and expires by itself.
        """
        self._output.close()
        self._playout.discard_unplayed()
        self._save_if_possible()  # Were it killed now, the next start would otherwise play what is about to be revoked.
        try:
            async with asyncio.timeout(_FINISH_S):
                await self._supplier.revoke_discarded()
        except (ClientFailure, TimeoutError):
            pass
        left = self._playout.discarded.values()
        if left:
            latest = max(code.expires_at for code in left)
            self._journal.say(
                "finish", f"{len(left)} Codes were issued ahead and not revoked; they expire by {_minute(latest)}"
            )
        self._save_if_possible()

    async def watch(self) -> None:
        """Ask the service what has changed, once."""
        was_reachable = self._watcher.is_reachable
        self._note_service(await self._watcher.run_round())
        if self._watcher.is_reachable and not was_reachable:
            self._supplier.wake()
        self._save_if_possible()
        if self._has_sounded:
            self._note_health()

    async def supply(self) -> None:
        """Issue ahead and revoke, once."""
        await self._supplier.run_round()
        self._save_if_possible()

    async def sound(self) -> None:
        """Write one block.

        Raises: OutputEnded.
        """
        block = self._player.next_block(self._clock.now())
        self._note_sound()
        try:
            await self._output.write(block)
        except OutputLost as lost:
            self._output_fault = str(lost)
            self._journal.say("output", self._output_fault)
            self._note_health()

    async def reopen(self) -> None:
        """Try to open the output that was lost."""
        try:
            await self._output.open()
        except OutputLost as lost:
            self._output_fault = str(lost)
        else:
            self._output_fault = None
            self._journal.hush("output", "the sound card plays again")

    async def _sound(self) -> None:
        while not self._playout.is_over:
            if self._output_fault is None:
                await self.sound()
            else:
                await self._clock.sleep(REOPEN_EVERY_S)
                await self.reopen()

    def _note_service(self, failure: ClientFailure | None) -> None:
        if self._watcher.is_reachable:
            self._journal.hush("service", "the service answers again")
        elif failure is not None:
            self._journal.say("service", f"the service cannot be asked: {describe_failure(failure)}")

    def _note_sound(self) -> None:
        """Say what begins to sound, once; several Codes in turn do not begin anew each time."""
        finished, self._player.finished_count = self._player.finished_count, 0
        self._journal.sounds.inc(finished)
        current = self._player.current
        if current is not None and current.xr_id not in self._announced:
            self._announced.append(current.xr_id)
            self._journal.say("sound", f"playing {current.xr_id}, valid until {_minute(current.until)}")
            self._note_health()
        elif current is None and (self._announced or not self._has_sounded):
            self._announced.clear()
            self._note_health()
        self._has_sounded = True

    def _note_health(self) -> None:
        now, current = self._clock.now(), self._player.current
        # A reader that reads nothing stops the player, but not what is known.
        if current is not None and not self._playout.may_sound(current, now):
            current = None
        silence = self._output_fault or (None if current is not None else self._playout.explain_silence(now))
        status = "playing"
        if silence is not None:
            status = "waiting" if self._playout.is_waiting(now) and self._output_fault is None else "silent"
            self._journal.say("sound", f"{status}: {silence}")
        self._journal.take_health(
            Health(
                status,
                silence,
                current.xr_id if current is not None and silence is None else None,
                self._playout.held_until(now),
                sum(len(line.held) for line in self._playout.lines),
                self._watcher.is_reachable,
                self._playout.schedule.is_open(now),
            )
        )

    def _explain_end(self) -> str:
        return "; ".join(line.ended for line in self._playout.lines if line.ended is not None)

    def _save_if_possible(self) -> None:
        try:
            self._save()
        except OSError as error:
            # The sound goes on. After a restart, the same requests get the same Codes.
            self._journal.say("state", f"the state cannot be saved: {error.strerror}")
        else:
            self._journal.hush("state", "the state is saved again")

    def _save(self) -> None:
        """Save what has changed.

        Raises: OSError.
        """
        rotation = self._playout.rotation
        state = replace(
            self._saved,
            rotate_s=None if rotation is None else rotation.every.total_seconds(),
            generation=self._playout.generation,
            lines={
                line.name: HeldLine(line.source, tuple(line.held.values()), line.source_from)
                for line in self._playout.lines
                if line.ended is None
            },
            discarded=tuple(self._playout.discarded.values()),
        )
        if state != self._saved:
            state = replace(state, saved_at=self._clock.now())
            self._state_file.save(state)
            self._saved = state


async def _repeat(act: Callable[[], Awaitable[None]], pause_s: float) -> None:
    while True:
        await act()
        await asyncio.sleep(pause_s)


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%SZ}"
