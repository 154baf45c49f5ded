"""The structured log: one event on each line, to standard error, as text for people or JSON for machines.

Ids, codes, counts and durations may be logged; tokens, client IP addresses, e-mail addresses and bodies never.
"""

import contextlib
import logging
import os
import sys
from typing import Any, Final, Literal, TextIO

import structlog

from soundmark.kit.tracing.context import add_trace_id

LogFormat = Literal["text", "json"]

_COLOURS: Final = {"debug": "\x1b[2m", "warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_PLAIN: Final = "\x1b[0m"


def configure(*, level: str, log_format: LogFormat | None, component: str) -> None:
    """Send the log events of this process and its libraries to standard error.

    `log_format` None means text on a terminal and JSON elsewhere.
    """
    stream: TextIO | None = sys.stderr  # None if the process was started without one.
    is_terminal = stream is not None and stream.isatty()
    as_text = log_format == "text" or (log_format is None and is_terminal)
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        add_trace_id,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        # Without local variables, which may hold secrets.
        structlog.processors.format_exc_info,
    ]
    renderer: Any = TextRenderer(is_terminal=is_terminal) if as_text else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*processors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(file=_LossyOutput(stream)),  # type: ignore[arg-type]  # it only writes and flushes
    )
    structlog.contextvars.bind_contextvars(component=component)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=processors))
    logging.basicConfig(handlers=[handler], level=max(logging.WARNING, logging.getLevelName(level.upper())), force=True)


class _LossyOutput:
    """A stream without what it does not take: on a full disk or a closed pipe, the service goes on."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream: Final = stream

    def write(self, text: str) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.write(text)

    def flush(self) -> None:
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.flush()


class TextRenderer:
    """A renderer that writes one short line for each event, and a traceback below it.

    On a terminal it leaves out the day and colours warnings and errors.
    """

    def __init__(self, *, is_terminal: bool) -> None:
        self._time: Final = slice(11, 19) if is_terminal else slice(0, 19)
        self._has_colours: Final = is_terminal and not os.environ.get("NO_COLOR")

    def __call__(self, _logger: Any, _method: str, event: structlog.typing.EventDict) -> str:
        level = event.pop("level", "info")
        below = [str(event.pop(name)) for name in ("stack", "exception") if name in event]
        moment = f"{event.pop('timestamp')[self._time]}Z"
        line = " ".join([moment, f"{event.pop('component', '-'):<8}", *_words(event, level)])
        if self._has_colours and level in _COLOURS:
            line = f"{_COLOURS[level]}{line}{_PLAIN}"
        return "\n".join([line, *below])


def _words(event: structlog.typing.EventDict, level: str) -> list[str]:
    name = event.pop("event")
    if name == "request":
        # The status shows the level.
        words = [_format_value(event.pop(key, None)) for key in ("status", "method", "route")]
        words.append(f"{event.pop('duration_ms', None)} ms")
    else:
        words = [*([] if level == "info" else [level]), name if name.isprintable() else repr(name)[1:-1]]
    request_id = event.pop("request_id", None)
    words += [f"{key}={_format_value(value)}" for key, value in event.items()]
    return words if request_id is None else [*words, _format_value(request_id)]


def _format_value(value: Any) -> str:
    """Return a value as one word, or in quotes, so that it can neither begin a line nor control a terminal."""
    if value is None:
        return "-"
    if not isinstance(value, str):
        return repr(value)
    return value if value.isprintable() and value and " " not in value else repr(value)
