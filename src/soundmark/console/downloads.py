"""Files that Core sends and a person saves."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import BinaryIO, Final, cast

from starlette.responses import Response, StreamingResponse

# Larger ones wait on the disk: an archive may have 1 GiB.
_IN_MEMORY_BYTES_MAX: Final = 4 * 1024 * 1024
_CHUNK_BYTES: Final = 256 * 1024


async def answer_download(
    download: Callable[[BinaryIO], Awaitable[object]], file_name: str, media_type: str
) -> Response:
    """Return a file, once all of it has arrived and was checked: what is refused or incomplete is never saved.

    Raises: what `download` raises.
    """
    # The answer closes it, after the last byte or when the browser hangs up.
    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES_MAX)  # noqa: SIM115
    try:
        await download(cast("BinaryIO", file))
    except BaseException:
        file.close()
        raise
    size = file.tell()
    file.seek(0)
    headers = {
        "content-disposition": f'attachment; filename="{file_name}"',
        "content-length": str(size),
        "cache-control": "no-store",
    }
    return StreamingResponse(_stream(cast("BinaryIO", file)), media_type=media_type, headers=headers)


async def _stream(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
