"""From what may sound to blocks of samples: sounds, the gaps between them, and silence."""

from datetime import datetime
from typing import Final

from soundmark.studio.play.playout import Playout
from soundmark.studio.play.records import Sounding
from soundmark.studio.play.sounds import RATE_HZ, SAMPLE_BYTES, RenderSound

# So short that a revoked Code stops at once, and long compared with the work for a block.
BLOCK_S: Final = 0.1
_BLOCK_BYTES: Final = round(BLOCK_S * RATE_HZ) * SAMPLE_BYTES
_SILENCE: Final = bytes(_BLOCK_BYTES)


class Player:
    """The maker of one endless sound from a playout."""

    def __init__(self, playout: Playout, render: RenderSound, gap_s: float) -> None:
        self._playout: Final = playout
        self._render: Final = render
        self._gap: Final = bytes(round(gap_s * RATE_HZ) * SAMPLE_BYTES)
        self._rest = memoryview(b"")
        self._is_sound = False
        # What sounds, or sounded last before the gap; None in silence.
        self.current: Sounding | None = None
        self.finished_count = 0

    def next_block(self, now: datetime) -> bytes:
        """Return the next tenth of a second. A Code that may not sound any more is cut off."""
        if self.current is not None and not self._playout.may_sound(self.current, now):
            self.current, self._is_sound, self._rest = None, False, memoryview(b"")
        block = b""
        while len(block) < _BLOCK_BYTES:
            if not self._rest and not self._begin_next(now):
                return block + _SILENCE[len(block) :]
            taken = self._rest[: _BLOCK_BYTES - len(block)]
            block += taken
            self._rest = self._rest[len(taken) :]
        return block

    def _begin_next(self, now: datetime) -> bool:
        """Begin the gap after a sound, or the next sound; return whether there is one."""
        if self._is_sound:
            self._is_sound = False
            self.finished_count += 1
            self._rest = memoryview(self._gap)
            if self._gap:
                return True
        self.current = self._playout.choose(now)
        if self.current is None:
            return False
        self._is_sound = True
        self._rest = memoryview(self._render(self.current.frame))
        return True
