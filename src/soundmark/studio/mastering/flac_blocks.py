"""The metadata blocks of a FLAC file (RFC 9639), which an encoder does not carry over."""

import shutil
from collections.abc import Iterator
from typing import BinaryIO, Final

from soundmark.studio.mastering.wav_layout import NotReadable

_STREAM_INFO: Final = 0
_SEEK_TABLE: Final = 3  # Of places in the old file.
_LAST: Final = 0x80
_HEAD_BYTES: Final = 4
_BLOCKS_MAX: Final = 1_000


def copy_metadata(source: BinaryIO, encoded: BinaryIO, target: BinaryIO) -> None:
    """Write the sound of `encoded` with the metadata of `source`, both at their beginnings, into `target`.

    Raises: NotReadable; OSError.
    """
    kept = [(kind, block) for kind, block in _read_blocks(source) if kind not in {_STREAM_INFO, _SEEK_TABLE}]
    (info,) = [(kind, block) for kind, block in _read_blocks(encoded) if kind == _STREAM_INFO]
    blocks = [info, *kept]
    target.write(b"fLaC")
    target.writelines(
        bytes([kind | (_LAST if number == len(blocks) else 0)]) + len(block).to_bytes(3, "big") + block
        for number, (kind, block) in enumerate(blocks, start=1)
    )
    shutil.copyfileobj(encoded, target, 1 << 20)


def _read_blocks(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the content of each block; afterwards, the position is at the sound."""
    if file.read(4) != b"fLaC":
        raise NotReadable("it is no FLAC file")
    for _ in range(_BLOCKS_MAX):
        head = file.read(_HEAD_BYTES)
        size = int.from_bytes(head[1:], "big")
        block = file.read(size)
        if len(head) < _HEAD_BYTES or len(block) < size:
            break
        yield head[0] & ~_LAST, block
        if head[0] & _LAST:
            return
    raise NotReadable("the FLAC file is broken")
