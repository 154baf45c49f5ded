"""The offline packs of a receiver, and what they prove about its clock."""

from datetime import UTC, datetime, timedelta
from typing import Final

from soundmark_sdk.clock import Clock
from soundmark_sdk.offline_pack import LIFE_MAX, OfflinePack, OfflineResolution, find_in_packs
from soundmark_sdk.transparency.policy import LogPolicy
from soundmark_sdk.verification import CLOCK_SKEW_MAX

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class PackShelf:
    """The packs that one receiver knows. Ended ones stay for as long as they can silence an older one.

    It must be at least as late as the service wrote in any pack or answer, plus the time that has passed since that was
    received. A clock that says otherwise was set back, and then no pack answers.
    """

    def __init__(self, clock: Clock, require_logged: LogPolicy | None) -> None:
        self._clock: Final = clock
        self._require_logged: Final = require_logged
        self.packs: tuple[OfflinePack, ...] = ()
        # A time that the service signed, and the monotonic time at which it was received.
        self._noted: tuple[datetime, float] | None = None

    def add(self, pack: OfflinePack) -> None:
        """Keep a pack; forget those that are too old to answer, and to silence what still answers."""
        self.note_time(pack.issued_at)
        earliest = self._compute_earliest()
        self.packs = tuple(each for each in (*self.packs, pack) if earliest - each.issued_at < LIFE_MAX)

    def note_time(self, signed_at: datetime) -> None:
        """Take note of a time that the service signed and that is therefore past."""
        if self._noted is None or signed_at > self._compute_earliest():
            self._noted = signed_at, self._clock.monotonic_s()

    def find(self, token: str) -> OfflineResolution | None:
        """Return what a pack says of a token now; None if none may answer, or the clock was set back."""
        now, earliest = self._clock.now(), self._compute_earliest()
        if earliest - now > CLOCK_SKEW_MAX:
            return None
        return find_in_packs(self.packs, token, max(now, earliest), require_logged=self._require_logged)

    def _compute_earliest(self) -> datetime:
        """Return the earliest time that it can be now."""
        if self._noted is None:
            return _LONG_AGO
        signed_at, noted_at_s = self._noted
        return signed_at + timedelta(seconds=self._clock.monotonic_s() - noted_at_s)
