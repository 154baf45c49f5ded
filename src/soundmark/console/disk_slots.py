"""Room on the disk for large downloads."""

from typing import Final

from soundmark.console.troubles import DownloadsBusy

# An archive may have 1 GiB, so this is the number of GiB that the temporary files of one process can take.
SLOTS_COUNT: Final = 4


class DiskSlots:
    """The slots of one process for downloads that do not fit into memory."""

    def __init__(self) -> None:
        self._free_count = SLOTS_COUNT

    def take(self) -> None:
        """Take a slot.

        Raises: DownloadsBusy.
        """
        if not self._free_count:
            raise DownloadsBusy
        self._free_count -= 1

    def give_back(self) -> None:
        """Return a slot that was taken."""
        assert self._free_count < SLOTS_COUNT, "each slot is returned once"
        self._free_count += 1
