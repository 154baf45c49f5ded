"""Spans: how long a request, a job, a call or a statement took, for those who switched that on.

Without a recorder, which `kit.tracing.switch` sets, nothing is recorded, and only the trace's context is kept. A span
has templates, ids, statuses and the text of statements; never a path, a parameter of a statement or a body.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import Token
from types import TracebackType
from typing import Final, Literal, Protocol, Self, TypeAlias

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.http.asgi import AsgiApp, Message, Receive, Scope, Send
from soundmark.kit.tracing.context import (
    TraceContext,
    begin_trace,
    current,
    drop_sampling,
    read_trace,
    receive_trace,
)

Kind: TypeAlias = Literal["server", "client", "consumer", "internal"]
# Whose decision about sampling a trace carries: nobody's yet, one that counts, or one that does not.
Origin: TypeAlias = Literal["new", "trusted", "untrusted"]
Attributes: TypeAlias = Mapping[str, str | int | bool]

_SERVER_ERROR: Final = 500
_METHODS: Final = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
_OTHER_METHOD: Final = "_OTHER"


class Span(Protocol):
    """A span that is being recorded."""

    def note(self, attributes: Attributes, *, name: str | None = None) -> None:
        """Add attributes, and give the span its final name."""
        ...

    def end(self, error: str | None) -> None:
        """End the span; `error` is the kind of failure, None for success."""
        ...


class Recorder(Protocol):
    """What makes spans and sends them somewhere."""

    def begin(self, name: str, kind: Kind, trace: TraceContext, origin: Origin) -> TraceContext | None:
        """Begin the first span of this process in `trace` and return its place; None if it is not sampled."""
        ...

    def begin_child(
        self, name: str, kind: Kind, parent: TraceContext, attributes: Attributes, links: Iterable[TraceContext] = ()
    ) -> TraceContext:
        """Begin a span below `parent`, which is recorded, and return its place."""
        ...


class Place:
    """A block that belongs to a trace. If the place is recorded, its span ends with the block."""

    __slots__ = ("_error", "_token", "trace")

    def __init__(self, trace: TraceContext) -> None:
        self.trace: Final = trace
        self._token: Token[TraceContext | None] | None = None
        self._error: str | None = None

    def note(self, attributes: Attributes, *, name: str | None = None, error: str | None = None) -> None:
        """Add to the span, if there is one: attributes, its final name, and the kind of failure."""
        if self.trace.span is not None:
            self.trace.span.note(attributes, name=name)
            self._error = error

    def note_response(self, method: str, route: str | None, status: int | None, request_id: str | None = None) -> None:
        """Add what a request was and how it was answered. `route` is a template; None if no route matched."""
        if self.trace.span is None:
            return
        known = method if method in _METHODS else _OTHER_METHOD
        attributes: dict[str, str | int | bool] = {"http.request.method": known}
        if route is not None:
            attributes["http.route"] = route
        if status is not None:
            attributes["http.response.status_code"] = status
        if request_id is not None:
            attributes["soundmark.request_id"] = request_id
        error = str(status) if status is not None and status >= _SERVER_ERROR else None
        self.note(attributes, name=known if route is None else f"{known} {route}", error=error)

    def __enter__(self) -> Self:
        self._token = current.set(self.trace)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        assert self._token is not None, "left after it was entered"
        current.reset(self._token)
        if self.trace.span is not None:
            # Only its name: its text could hold anything.
            self.trace.span.end(self._error if kind is None else kind.__name__)


class _Nowhere:
    """A block that is not recorded, and leaves the trace as it is."""

    def note(self, attributes: Attributes, *, name: str | None = None, error: str | None = None) -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


_NOWHERE: Final = _Nowhere()
_recorder: Recorder | None = None


def set_recorder(recorder: Recorder | None) -> None:
    """Record with `recorder` from now on; None: no more. Apps and pools that exist keep what they were made with."""
    global _recorder  # noqa: PLW0603 - one for the process, like the configuration of the log
    _recorder = recorder


def is_recording() -> bool:
    """Return whether this process records spans."""
    return _recorder is not None


def is_recorded() -> bool:
    """Return whether the current place is recorded."""
    trace = current.get()
    return trace is not None and trace.span is not None


def enter_request(
    scope: Scope, entropy: Entropy, is_trusted: Callable[[Scope], bool], *, is_recorded: bool = True
) -> Place:
    """Return the place of a request in the trace that its headers name, or else in a new one.

    A caller who is not trusted chooses the trace's id, but not what is sampled.
    """
    received = receive_trace(scope["headers"])
    trace = received or begin_trace(entropy)
    origin: Origin = "new" if received is None else "trusted" if is_trusted(scope) else "untrusted"
    recorder = _recorder if is_recorded else None
    if recorder is None:
        return Place(drop_sampling(trace, entropy) if origin == "untrusted" else trace)
    return Place(recorder.begin("request", "server", trace, origin) or drop_sampling(trace, entropy))


def enter_job(name: str, kind: Kind, entropy: Entropy, traceparent: str | None, tracestate: str | None = None) -> Place:
    """Return the place of work whose trace was stored with it as the values of the two headers, or a new trace."""
    stored = read_trace(traceparent, tracestate)
    trace = stored or begin_trace(entropy)
    if _recorder is None:
        return Place(trace)
    return Place(
        _recorder.begin(name, kind, trace, "new" if stored is None else "trusted") or drop_sampling(trace, entropy)
    )


def enter_child(name: str, kind: Kind, attributes: Attributes) -> Place | _Nowhere:
    """Return a place below the current one; if that is not recorded, neither is this one."""
    parent = current.get()
    if _recorder is None or parent is None or parent.span is None:
        return _NOWHERE
    return Place(_recorder.begin_child(name, kind, parent, attributes))


def begin_child(name: str, attributes: Attributes) -> Span | None:
    """Begin a call's span below the current place; the caller ends it. None if this trace is not recorded."""
    parent = current.get()
    if _recorder is None or parent is None or parent.span is None:
        return None
    span: Span = _recorder.begin_child(name, "client", parent, attributes).span
    return span


def enter_batch(name: str, traces: Collection[TraceContext | None]) -> Place | _Nowhere:
    """Return a place below the first of `traces` that is recorded, linked to the others, for work done for them all."""
    if _recorder is None:
        return _NOWHERE
    recorded = [trace for trace in traces if trace is not None and trace.span is not None]
    if not recorded:
        return _NOWHERE
    size = {"soundmark.batch_size": len(traces)}
    return Place(_recorder.begin_child(name, "internal", recorded[0], size, recorded[1:]))


def trace_endpoint(app: AsgiApp, route: str, entropy: Entropy, is_trusted: Callable[[Scope], bool]) -> AsgiApp:
    """Return `app`, which serves the template `route`, with a span for each request; `app` itself if none are made.

    For the hot paths, which keep no trace of their own: they pay for tracing only where it is switched on.
    """
    if _recorder is None:
        return app

    async def traced(scope: Scope, receive: Receive, send: Send) -> None:
        status: int | None = None

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
            await send(message)

        with enter_request(scope, entropy, is_trusted) as place:
            try:
                await app(scope, receive, send if place.trace.span is None else send_noted)
            finally:
                place.note_response(scope["method"], route, status)

    return traced
