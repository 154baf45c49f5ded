"""The trace that a request, a job or an attempt belongs to, and how it is read and written.

Source: W3C Trace Context, Levels 1 and 2.
"""

import re
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final

from soundmark.kit.crypto.entropy import Entropy

PARENT_HEADER: Final = "traceparent"
STATE_HEADER: Final = "tracestate"
SAMPLED: Final = 0x01
RANDOM: Final = 0x02  # Level 2: the trace id is random, so that samplers may use it as chance.

_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_OWS: Final = b" \t"
# "tracestate Header Field Values": a key of Level 2, which every key of Level 1 is too, and a value of 1 to 256
# printable characters that does not end in a blank.
_MEMBER: Final = re.compile(
    rb"([a-z0-9][a-z0-9_*/@-]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_MEMBERS_MAX: Final = 32
# "Limits": so many characters are always passed on, and those of long members are the first to go.
_STATE_CHARS_MAX: Final = 512
_LONG_MEMBER_CHARS: Final = 128

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A place in a trace: what is called from here has `parent_id` as its parent.

    The ids are in lower-case hexadecimal. `state` is the `tracestate` of the caller, unchanged. `span` is None unless
    this place is recorded (`kit.tracing.spans`).
    """

    trace_id: str
    parent_id: str
    flags: int
    state: str = ""
    span: Any = None

    @property
    def traceparent(self) -> str:
        """The value of the header `traceparent`."""
        return f"00-{self.trace_id}-{self.parent_id}-{self.flags:02x}"


current: Final[ContextVar[TraceContext | None]] = ContextVar("trace", default=None)


def begin_trace(entropy: Entropy) -> TraceContext:
    """Return the beginning of a new trace, which is not sampled."""
    # All zeros would be invalid, and come up once in the life of the universe.
    ids = entropy.take(_TRACE_ID_BYTES + _SPAN_ID_BYTES).hex()
    return TraceContext(ids[: 2 * _TRACE_ID_BYTES], ids[2 * _TRACE_ID_BYTES :], RANDOM)


def receive_trace(headers: Headers) -> TraceContext | None:
    """Return the trace that the headers of a request name; None without one well-formed `traceparent`."""
    parents: list[bytes] = []
    states: list[bytes] = []
    for name, value in headers:
        if name == b"traceparent":
            parents.append(value)
        elif name == b"tracestate":
            states.append(value)
    return _parse(parents[0], states) if len(parents) == 1 else None


def read_trace(traceparent: str | None, tracestate: str | None = None) -> TraceContext | None:
    """Return the trace that was stored as the values of the two headers; None if there was none."""
    if traceparent is None:
        return None
    return _parse(traceparent.encode(), () if tracestate is None else (tracestate.encode(),))


def drop_sampling(trace: TraceContext, entropy: Entropy) -> TraceContext:
    """Return the same trace without the caller's decision that it is sampled.

    The flag may only be changed together with the parent's id.
    """
    if not trace.flags & SAMPLED:
        return trace
    return replace(trace, parent_id=entropy.take(_SPAN_ID_BYTES).hex(), flags=trace.flags & ~SAMPLED)


def accept_trace(headers: Headers, entropy: Entropy, is_trusted: Callable[[], bool]) -> TraceContext:
    """Return the trace of a request: the one that its headers name, or else a new one.

    A caller who is not trusted chooses the ids, but not what is sampled.
    """
    trace = receive_trace(headers)
    if trace is None:
        return begin_trace(entropy)
    return trace if is_trusted() else drop_sampling(trace, entropy)


def find_trace_id(headers: Headers, entropy: Entropy) -> str:
    """Return the id of the current trace or, where none is kept, of the request with these headers, for the log."""
    trace = current.get() or receive_trace(headers) or begin_trace(entropy)
    return trace.trace_id


def find_traceparent() -> str | None:
    """Return the header `traceparent` of what is called from here; None outside of a trace."""
    trace = current.get()
    return None if trace is None else trace.traceparent


def outgoing_headers() -> dict[str, str]:
    """Return the headers that continue the current trace in a component of ours; none outside of a trace."""
    trace = current.get()
    if trace is None:
        return {}
    headers = {PARENT_HEADER: trace.traceparent}
    if trace.state:
        headers[STATE_HEADER] = trace.state
    return headers


def add_trace_id(_logger: Any, _method: str, event: Any) -> Any:
    """Add the id of the current trace to a log event; a processor of structlog."""
    trace = current.get()
    if trace is not None:
        event.setdefault("trace_id", trace.trace_id)
    return event


def _parse(traceparent: bytes, states: Iterable[bytes]) -> TraceContext | None:
    match = _PARENT.fullmatch(traceparent.strip(_OWS))
    if match is None:
        return None
    version, trace_id, parent_id, flags, rest = match.groups()
    if version == b"ff" or (version == b"00" and rest is not None) or not int(trace_id, 16) or not int(parent_id, 16):
        return None
    # Of a later version, only what every version has: "Versioning of traceparent".
    known = SAMPLED | RANDOM if version == b"00" else SAMPLED
    return TraceContext(trace_id.decode(), parent_id.decode(), int(flags, 16) & known, _read_state(states))


def _read_state(values: Iterable[bytes]) -> str:
    """Return the list of all headers, unchanged if it is within the limits; empty if it has no members, or bad ones."""
    text = b",".join(values).strip(_OWS)
    members = [member for each in text.split(b",") if (member := each.strip(_OWS))]
    matches = [_MEMBER.fullmatch(member) for member in members]
    keys = {match[1] for match in matches if match is not None}
    if not 0 < len(members) <= _MEMBERS_MAX or len(keys) < len(members):
        return ""
    return (text if len(text) <= _STATE_CHARS_MAX else _shorten(members)).decode()


def _shorten(members: list[bytes]) -> bytes:
    """Return the list without whole members: first the long ones, then from the right. Source: "Limits"."""
    kept = list(members)
    for member in [*(each for each in reversed(members) if len(each) > _LONG_MEMBER_CHARS), *reversed(members)]:
        if len(b",".join(kept)) <= _STATE_CHARS_MAX:
            break
        if member in kept:
            kept.remove(member)
    return b",".join(kept)
