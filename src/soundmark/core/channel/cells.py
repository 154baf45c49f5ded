"""The cells of measuring: several Audiences, of which each organisation has one for good."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.problems import AudienceUnavailable
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.secret import Secret

_LOOKED_AT_EVERY_S: Final = 1.0
_log: Final = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Cell:
    """One Audience: its name, its URL and credential, and whether Core may choose it for another organisation."""

    name: str
    url: str
    credential: Secret
    takes_new: bool


@dataclass(frozen=True, slots=True)
class CellSource:
    """Where the cells come from, such as a file.

    `find_version` returns what changes whenever the cells may have changed. Both functions raise ValueError if the
    source cannot be read, with a message for the operator. `is_divided` is False if there will never be a second cell.
    """

    find_version: Callable[[], object]
    read: Callable[[], Sequence[Cell]]
    is_divided: bool


class Cells:
    """The cells as the source lists them now, looked at when they are used and at most once a second.

    While the source cannot be read, the last good list stays, and the log says so once for each version.
    """

    def __init__(self, source: CellSource, connect: Callable[[Cell], AudienceChannel], clock: Clock) -> None:
        """Read the source for the first time.

        Raises: ValueError.
        """
        self._source: Final = source
        self._connect: Final = connect
        self._clock: Final = clock
        self._version: object = source.find_version()
        self._cells: Mapping[str, Cell] = {cell.name: cell for cell in source.read()}
        self._channels: Final[dict[tuple[str, str, str], AudienceChannel]] = {}
        self._look_again_at_s = clock.monotonic_s() + _LOOKED_AT_EVERY_S
        self.is_divided: Final = source.is_divided

    def names(self) -> frozenset[str]:
        """Return the names of all cells."""
        return frozenset(self._current())

    def names_that_take_new(self) -> list[str]:
        """Return the names of the cells that Core may give to another organisation, in the order of the source."""
        return [cell.name for cell in self._current().values() if cell.takes_new]

    def open(self, name: str) -> AudienceChannel:
        """Return the channel to a cell.

        Raises: AudienceUnavailable if the source does not list the cell.
        """
        cell = self._current().get(name)
        if cell is None:
            _log.error("cell_unknown", cell=name)
            raise AudienceUnavailable
        key = (cell.name, cell.url, cell.credential.reveal())
        if key not in self._channels:
            self._channels[key] = self._connect(cell)
        return self._channels[key]

    def open_all(self) -> list[AudienceChannel]:
        """Return the channels to all cells."""
        return [self.open(name) for name in self._current()]

    async def are_ready(self) -> bool:
        """Return whether every cell is ready."""
        return all(await asyncio.gather(*(channel.is_ready() for channel in self.open_all())))

    async def aclose(self) -> None:
        """Close the connections to every cell, including those to cells that the source no longer lists."""
        while self._channels:
            await self._channels.popitem()[1].aclose()

    def _current(self) -> Mapping[str, Cell]:
        now_s = self._clock.monotonic_s()
        if now_s >= self._look_again_at_s:
            self._look_again_at_s = now_s + _LOOKED_AT_EVERY_S
            self._look_again()
        return self._cells

    def _look_again(self) -> None:
        try:
            version: object = self._source.find_version()
        except ValueError as error:
            version = str(error)
        if version == self._version:
            return
        self._version = version
        try:
            cells = self._source.read()
        except ValueError as error:
            _log.error("cells_not_read", detail=str(error))
            return
        self._cells = {cell.name: cell for cell in cells}
        _log.info("cells_read", cells=sorted(self._cells))
