"""A venue: an agent with a service in memory, a clock that stands still, and an output that a test can unplug."""

from datetime import timedelta
from pathlib import Path

from soundmark.studio.play.agent import Agent
from soundmark.studio.play.journal import Journal
from soundmark.studio.play.outputs import OutputEnded, OutputLost
from soundmark.studio.play.player import Player
from soundmark.studio.play.playout import Line, Playout
from soundmark.studio.play.rotation import Rotation
from soundmark.studio.play.schedule import ALWAYS, Schedule
from soundmark.studio.play.state_file import SavedState, StateFile
from soundmark.studio.play.steady_clock import SteadyClock
from soundmark.studio.play.supplier import Supplier
from soundmark.studio.play.watcher import Watcher
from support.processes.fake_clock import FakeClock
from support.studio.playout_lines import NOON
from support.studio.playout_service import MemoryService


class Room:
    """An output that keeps what it was given: a frame is a block of its own number."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self.is_open = False
        self.fault: OutputLost | OutputEnded | None = None

    async def open(self) -> None:
        """See `Output`."""
        self._check()
        self.is_open = True

    async def write(self, block: bytes) -> None:
        """See `Output`."""
        self._check()
        self.heard.append(max(block))

    def close(self) -> None:
        """See `Output`."""
        self.is_open = False

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault


def render(frame: str) -> bytes:
    """Return a sound of one block, which is the last number of the Code."""
    return bytes([int(frame[-3:])]) * 9600


class StillClock(FakeClock):
    """A clock of which both halves stand still, until a test moves them."""

    def monotonic_s(self) -> float:
        return self.unix_s()


class Venue:
    """An agent, ready to begin, and everything around it. `restart` makes another agent in its place."""

    def __init__(
        self, folder: Path, lines: list[Line], rotation: Rotation | None = None, schedule: Schedule = ALWAYS
    ) -> None:
        self.clock = StillClock()
        self.clock.frozen_at = NOON
        self.service = MemoryService(self.clock)
        self.state_file = StateFile(folder / "state.json")
        self.rotation = rotation
        self.schedule = schedule
        self.names = [(line.name, line.campaign_id) for line in lines]
        self.said: list[str] = []
        self.room = Room()
        self.restart()

    def restart(self) -> None:
        """Start an agent as after a death: all that it knows is in the state file."""
        saved = self.state_file.read() or SavedState("agent")
        clock = SteadyClock(self.clock, saved.saved_at)
        self.playout = Playout(
            [Line(name, campaign_id) for name, campaign_id in self.names], self.rotation, self.schedule
        )
        saved.restore(self.playout, clock.now())
        self.journal = Journal(self.said.append)
        watcher = Watcher(self.playout, self.service, clock, self.journal)
        supplier = Supplier(
            self.playout,
            self.service,
            clock,
            self.journal,
            agent_id=saved.agent_id,
            look_at_campaigns=watcher.look_at_campaigns_soon,
        )
        self.agent = Agent(
            self.playout,
            Player(self.playout, render, gap_s=0),
            self.service,
            watcher,
            supplier,
            self.room,
            self.state_file,
            saved=saved,
            clock=clock,
            journal=self.journal,
        )

    async def begin(self) -> None:
        """Begin, and let every part act once."""
        await self.agent.begin()
        await self.turn()

    async def turn(self, **later: float) -> int:
        """Let time pass and every part act once; return the number that is heard, 0 for silence."""
        if later:
            self.clock.shift += timedelta(**later)
        await self.agent.watch()
        await self.agent.supply()
        return await self.hear()

    async def hear(self) -> int:
        """Return the number that is heard now."""
        await self.agent.sound()
        return self.room.heard[-1]

    def count(self, metric: str, **labels: str) -> float:
        """Return the value of a metric."""
        return self.journal.registry.get_sample_value(f"soundmark_play_{metric}", labels) or 0.0
