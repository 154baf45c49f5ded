"""The offline packs of a receiver, and what they prove about its clock."""

from datetime import UTC, datetime, timedelta
from typing import Final

from soundmark_sdk.clock import Clock
from soundmark_sdk.offline_pack import LIFE_MAX, OfflinePack, OfflineResolution, find_in_packs
from soundmark_sdk.transparency.policy import LogPolicy
from soundmark_sdk.verification import CLOCK_SKEW_MAX

PACKS_MAX: Final = 20

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
_FAR_AHEAD: Final = datetime.max.replace(tzinfo=UTC)


class PackShelf:
    """The packs that one receiver knows: the newest `PACKS_MAX` that can answer, or silence an older one.

    It must be at least as late as the service wrote in any pack or answer, plus the time that has passed since that was
    received. A clock that says otherwise was set back, and then no pack answers.
    """

    def __init__(self, clock: Clock, require_logged: LogPolicy | None) -> None:
        self._clock: Final = clock
        self._require_logged: Final = require_logged
        self.packs: tuple[OfflinePack, ...] = ()  # The newest first.
        # Nothing this old is kept: it has ended, or a newer pack that may have silenced it is forgotten.
        self._floor = _LONG_AGO
        # A time that the service signed, and the monotonic time at which it was received.
        self._noted: tuple[datetime, float] | None = None

    def add(self, pack: OfflinePack) -> None:
        """Keep a pack once; forget what a newer one replaces, what is older than any that lasts, and the oldest.

        The same pack replaces itself only if it comes with a proof.
        """
        self.note_time(pack.issued_at)
        known = {each.digest: each for each in self.packs}
        if pack.digest not in known or pack.proof is not None:
            known[pack.digest] = pack
        earliest = self._compute_earliest()
        useful = [
            each for each in known.values() if not any(newer.replaces(each, earliest) for newer in known.values())
        ]
        useful.sort(key=lambda each: each.issued_at, reverse=True)
        self._floor = max([self._floor, *(each.issued_at for each in useful[PACKS_MAX:])])
        self.packs = tuple(
            each for each in useful if each.issued_at > self._floor and earliest - each.issued_at < LIFE_MAX
        )

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
        passed = timedelta(seconds=self._clock.monotonic_s() - noted_at_s)
        return signed_at + passed if passed < _FAR_AHEAD - signed_at else _FAR_AHEAD
