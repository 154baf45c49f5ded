"""Reading request bodies: how large they may be, and what it may cost to judge them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request

from soundmark.kit.json_outline import read_outline
from soundmark.kit.problems import MalformedBody, PayloadTooLarge, UnsupportedMediaType
from soundmark.kit.strict_json import MalformedJson, Unrepresentable, parse_json

_IN_LOOP_BYTES_MAX: Final = 64 * 1024  # Read in under 3 ms, whatever it holds; what is larger is read in a thread.
_LENGTH_CHARS_MAX: Final = 15  # Of a Content-Length; int() refuses some thousand digits in its own way.


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How much a JSON body may hold: bytes, and what opens and separates values (`count_structure`)."""

    bytes_max: int
    structure_max: int


# Contract, section 1. The longest text that such a request holds has 4,096 characters, all of which may be commas.
SMALL_BODY: Final = BodyLimits(64 * 1024, 12 * 1024)
# Of issuance and recovery, whose intent may be written with escapes; it has 16 KiB in canonical form, and 4 KiB are for
# what stands around it.
LARGE_BODY: Final = BodyLimits(1024 * 1024, 20 * 1024)


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body that was read. `value` is only what could be read cheaply where `is_excessive`: it must be refused."""

    data: bytes
    value: Any
    is_excessive: bool


async def read_json_body(request: Request, limits: BodyLimits, names: Sequence[str]) -> JsonBody:
    """Read a JSON body; of one that holds more values than any request needs, only the members `names`.

    Raises: UnsupportedMediaType; PayloadTooLarge, before anything is parsed; MalformedBody.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType
    data = await read_body(request, limits.bytes_max)
    try:
        if len(data) > _IN_LOOP_BYTES_MAX:
            return await asyncio.to_thread(_parse, data, limits, names)
        return _parse(data, limits, names)
    except MalformedJson as error:
        raise MalformedBody(f"The body is not well-formed JSON: {error}.") from None


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the whole body.

    Raises: PayloadTooLarge, before more than `max_bytes` are held.
    """
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and (len(declared) > _LENGTH_CHARS_MAX or int(declared) > max_bytes):
        raise PayloadTooLarge
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes:
            raise PayloadTooLarge
        chunks.append(chunk)
    return b"".join(chunks)


def _parse(data: bytes, limits: BodyLimits, names: Sequence[str]) -> JsonBody:
    value = parse_json(data, structure_max=limits.structure_max)
    if isinstance(value, Unrepresentable):
        return JsonBody(data, read_outline(data, names, structure_max=limits.structure_max), is_excessive=True)
    return JsonBody(data, value, is_excessive=False)
