"""Reading request bodies, with limits on their size and on the cost of validating them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from starlette.requests import Request

from soundmark.kit.http.requests.json_outline import read_outline
from soundmark.kit.http.requests.strict_json import MalformedJson, Unrepresentable, parse_json
from soundmark.kit.http.responses.problems import MalformedBody, PayloadTooLarge, UnsupportedMediaType

# JSON of this size is read in under 3 ms, whatever it holds. Larger bodies are read in a thread.
_IN_LOOP_BYTES_MAX: Final = 64 * 1024
# Read in under 0.4 ms as JSON, and 0.5 ms as a form. Of larger bodies, one is read at a time.
AT_ONCE_BYTES_MAX: Final = 8 * 1024
_MEMBERS_MAX: Final = 64  # Of one object, four times what the largest shape has.
_LENGTH_CHARS_MAX: Final = 15  # Of a Content-Length; int() refuses some thousand digits in its own way.
_T = TypeVar("_T")

_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How much a JSON body may hold: bytes, and characters that open and separate values (`count_structure`)."""

    bytes_max: int
    structure_max: int


# Contract, section 1. The longest text that such a request holds has 4,096 characters, all of which may be commas.
SMALL_BODY: Final = BodyLimits(64 * 1024, 12 * 1024)
# For issuance and recovery, whose intent may be written with escapes: it has 16 KiB in canonical form, and the rest has
# 4 KiB.
LARGE_BODY: Final = BodyLimits(1024 * 1024, 20 * 1024)
# For what was measured of 10,000 repetitions, each of which has 6 such characters.
MEASURED_BODY: Final = BodyLimits(1024 * 1024, 64 * 1024)
# For what other systems send, which is open and signed. The largest object of a provider has some thousand values.
SIGNED_BODY: Final = BodyLimits(1024 * 1024, 128 * 1024)


@dataclass(frozen=True, slots=True)
class Excess:
    """A place where a body holds too much for a model: its path of members, the error message, and the value."""

    place: tuple[str, ...]
    message: str
    value: Unrepresentable | None = None


@dataclass(frozen=True, slots=True)
class JsonBody:
    """A body that was read. If it has `excess`, it must be refused, and `value` is only what could be read cheaply."""

    data: bytes
    value: Any
    excess: Sequence[Excess]


async def read_json_body(request: Request, limits: BodyLimits, names: Sequence[str]) -> JsonBody:
    """Read a JSON body; if it holds more values than any request needs, read only the members `names`.

    Raises: UnsupportedMediaType; PayloadTooLarge, before anything is parsed; MalformedBody.
    """
    if media_type_of(request) != "application/json":
        raise UnsupportedMediaType
    return await parse_body(await read_body(request, limits.bytes_max), limits, names)


async def parse_body(data: bytes, limits: BodyLimits, names: Sequence[str]) -> JsonBody:
    """Read JSON that arrived as a body, without keeping other requests waiting; `names` as in `read_json_body`.

    Raises: MalformedBody.
    """
    try:
        return await parse_in_turn(data, lambda text: _parse(text, limits, names), in_loop_bytes_max=_IN_LOOP_BYTES_MAX)
    except MalformedJson as error:
        raise MalformedBody(f"The body is not well-formed JSON: {error}.") from None


async def parse_in_turn(data: bytes, parse: Callable[[bytes], _T], *, in_loop_bytes_max: int = AT_ONCE_BYTES_MAX) -> _T:
    """Return what `parse` makes of a body, without keeping other requests waiting.

    A small body is parsed at once. Of the larger ones, one is parsed at a time: up to `in_loop_bytes_max` in the event
    loop, above that in a thread.
    """
    if len(data) <= AT_ONCE_BYTES_MAX:
        return parse(data)
    async with _turn_of_large_bodies():
        if len(data) > in_loop_bytes_max:
            return await asyncio.to_thread(parse, data)
        parsed = parse(data)
        await asyncio.sleep(0)  # Let every other request continue before the next large body is read.
        return parsed


def media_type_of(request: Request) -> str:
    """Return the media type of the body without its parameters, in lower case; empty if it is not stated."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _turn_of_large_bodies() -> asyncio.Lock:
    """Return the lock of this event loop that lets one large body be read at a time.

    Otherwise a hundred that arrive together would block everybody else for a hundred times three milliseconds.
    """
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())


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


def find_crowds(value: Any) -> list[Excess]:
    """Find objects with more members than any shape has, since a model would report every one of these members.

    Only the outermost object and its members are checked: deeper inside, the only objects in shapes are those that may
    hold anything.
    """
    message = f"must have at most {_MEMBERS_MAX} members"
    if not isinstance(value, dict):
        return []
    if len(value) > _MEMBERS_MAX:
        return [Excess((), message)]
    return [
        Excess((name,), message)
        for name, member in value.items()
        if isinstance(member, dict) and len(member) > _MEMBERS_MAX
    ]


def _parse(data: bytes, limits: BodyLimits, names: Sequence[str]) -> JsonBody:
    value = parse_json(data, structure_max=limits.structure_max)
    if not isinstance(value, Unrepresentable):
        return JsonBody(data, value, find_crowds(value))
    members = read_outline(data, names, structure_max=limits.structure_max)
    message = "must have fewer values and levels"
    found = [Excess((name,), message, value) for name, member in members.items() if _holds_excess(member)]
    return JsonBody(data, members, found or [Excess((), message, value)])


def _holds_excess(value: Any) -> bool:
    """Return whether the value is `Unrepresentable`, or holds it along the last items of all levels."""
    while isinstance(value, list | dict) and value:
        value = value[-1] if isinstance(value, list) else next(reversed(value.values()))
    return isinstance(value, Unrepresentable)
