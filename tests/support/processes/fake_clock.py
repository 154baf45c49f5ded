"""A clock that a test can freeze and move."""

from datetime import UTC, datetime, timedelta

from soundmark.kit.clock import SystemClock


class FakeClock(SystemClock):
    """The machine's clocks, which a test moves."""

    def __init__(self) -> None:
        self.shift = timedelta()
        self.frozen_at: datetime | None = None
        self._monotonic_shift_s = 0.0

    def now(self) -> datetime:
        return (self.frozen_at or super().now()) + self.shift

    def unix_s(self) -> float:
        begin_s = super().unix_s() if self.frozen_at is None else self.frozen_at.timestamp()
        return begin_s + self.shift.total_seconds()

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self._monotonic_shift_s

    def advance(self, **delta: float) -> None:
        """Move both clocks forward; a negative step moves the wall clock only, as a real one would jump."""
        step = timedelta(**delta)
        self.shift += step
        self._monotonic_shift_s += max(0.0, step.total_seconds())

    def reset(self) -> None:
        """Let the wall clock show the true time again; the other one cannot go back."""
        self.shift = timedelta()
        self.frozen_at = None

    def freeze(self) -> datetime:
        """Stop the wall clock at a whole second and return it."""
        self.frozen_at = datetime.now(UTC).replace(microsecond=0)
        self.shift = timedelta()
        return self.frozen_at
