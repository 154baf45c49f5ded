"""What an agent tells: lines for the person or the system's log, counters, and its health. None holds a secret."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge


@dataclass(frozen=True, slots=True)
class Health:
    """What an agent does. `status` is playing, waiting or silent, for the `reason`; waiting is silence as planned.

    `held_until` is until when it can go on without the service.
    """

    status: str
    reason: str | None = None
    xr_id: str | None = None
    held_until: datetime | None = None
    held_count: int = 0
    is_service_reachable: bool = False
    is_in_schedule: bool = True

    @property
    def is_good(self) -> bool:
        """Whether there is sound when there should be."""
        return self.status in {"playing", "waiting"}


class Journal:
    """The lines, the counters and the last health. Another thread may read the counters and the health."""

    def __init__(self, write_line: Callable[[str], None]) -> None:
        self._write_line: Final = write_line
        self._said: Final[dict[str, str]] = {}
        self.health = Health("silent", "it has just started")
        self.registry: Final = CollectorRegistry()
        more: Any = {"registry": self.registry}
        self.sounds: Final = Counter("soundmark_play_sounds", "Codes that were sounded to their end.", **more)
        self.issued: Final = Counter("soundmark_play_issued", "Codes that were issued for a slot of time.", **more)
        self.revoked: Final = Counter(
            "soundmark_play_revoked", "Codes that were issued ahead and revoked because they were not needed.", **more
        )
        self.failures: Final = Counter(
            "soundmark_play_failures",
            "Requests that the service did not fulfil, by the code of its problem, or `unreachable`.",
            ["code"],
            **more,
        )
        self._playing: Final = Gauge("soundmark_play_playing", "1 while a Code sounds, gaps included.", **more)
        self._healthy: Final = Gauge("soundmark_play_healthy", "1 while `/healthz` answers 200.", **more)
        self._held: Final = Gauge("soundmark_play_held_codes", "Codes that are held for later slots.", **more)
        self._held_until: Final = Gauge(
            "soundmark_play_held_until_seconds",
            "Unix time until which it can go on without the service; 0 if it cannot.",
            **more,
        )
        self._reachable: Final = Gauge(
            "soundmark_play_service_reachable", "1 while the service answers its requests.", **more
        )
        self._in_schedule: Final = Gauge(
            "soundmark_play_in_schedule", "1 while its schedule is open, or without one.", **more
        )

    def say(self, topic: str, line: str) -> None:
        """Write a line, unless it is the last one on this topic."""
        if self._said.get(topic) != line:
            self._said[topic] = line
            self._write_line(line)

    def hush(self, topic: str, line: str) -> None:
        """Write that the trouble of a topic is over, if there was any."""
        if self._said.pop(topic, None) is not None:
            self._write_line(line)

    def take_health(self, health: Health) -> None:
        """Take what the agent does now."""
        self.health = health
        self._playing.set(health.status == "playing")
        self._healthy.set(health.is_good)
        self._held.set(health.held_count)
        self._held_until.set(0 if health.held_until is None else health.held_until.timestamp())
        self._reachable.set(health.is_service_reachable)
        self._in_schedule.set(health.is_in_schedule)
