"""Files that Core sends and a person saves."""

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, BinaryIO, Final, cast

from starlette.requests import Request
from starlette.responses import Response

from soundmark.console.disk_slots import DiskSlots
from soundmark.console.visit import Visit
from soundmark.kit.http.responses.download import Download
from soundmark.kit.tasks import cancel_and_wait

# Larger ones wait on the disk.
_IN_MEMORY_BYTES_MAX: Final = 4 * 1024 * 1024


class _Spool:
    """A file in memory that moves to the disk when it grows too large, if there is a slot for it."""

    def __init__(self, slots: DiskSlots) -> None:
        # The answer closes it, after the last byte or when the browser hangs up.
        self.file: Final = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES_MAX)  # noqa: SIM115 - see `release`
        self.seekable: Final = self.file.seekable
        self.tell: Final = self.file.tell
        self.seek: Final = self.file.seek
        self.truncate: Final = self.file.truncate
        self._slots: Final = slots
        self._has_slot = False

    def write(self, chunk: bytes) -> int:
        """Raises: DownloadsBusy."""
        if not self._has_slot and self.file.tell() + len(chunk) > _IN_MEMORY_BYTES_MAX:
            self._slots.take()
            self._has_slot = True
        return self.file.write(chunk)

    def release(self) -> None:
        """Close the file and return its slot."""
        self.file.close()
        if self._has_slot:
            self._has_slot = False
            self._slots.give_back()


async def answer_download(
    visit: Visit, download: Callable[[BinaryIO], Coroutine[Any, Any, object]], file_name: str, media_type: str
) -> Response:
    """Return a file, once all of it has arrived and was checked: what is refused or incomplete is never saved.

    Raises: DownloadsBusy; what `download` raises.
    """
    spool = _Spool(visit.console.disk_slots)
    try:
        with visit.deadline.lifted():  # A large file takes minutes.
            is_wanted = await _finish_unless_gone(visit.request, download(cast("BinaryIO", spool)))
    except BaseException:
        spool.release()
        raise
    if not is_wanted:
        spool.release()
        return Response(status_code=HTTPStatus.SERVICE_UNAVAILABLE)  # Nobody is there to read it.
    headers = {"cache-control": "no-store"}
    return Download(cast("BinaryIO", spool.file), media_type, name=file_name, headers=headers, on_closed=spool.release)


async def _finish_unless_gone(request: Request, work: Coroutine[Any, Any, object]) -> bool:
    """Do the work, and return whether it was finished before the browser hung up.

    Raises: what `work` raises.
    """
    working = asyncio.create_task(work, name="download")
    leaving = asyncio.create_task(_until_gone(request), name="wait for the browser to hang up")
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        for task in (leaving, working):
            if not task.done():
                await cancel_and_wait(task)


async def _until_gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
