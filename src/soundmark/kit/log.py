"""Structured log: one event a line, to standard error, as text for people or JSON for machines.

What may be logged: ids, codes, counts, durations. Never a token, an address, an e-mail or a body.
"""

import logging
import sys
from typing import Any, Literal

import structlog

LogFormat = Literal["text", "json"]


def configure(*, level: str, log_format: LogFormat | None, component: str) -> None:
    """Send this process's events, and those of its libraries, to standard error.

    `log_format` None means text on a terminal and JSON elsewhere.
    """
    as_text = log_format == "text" or (log_format is None and sys.stderr.isatty())
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    if as_text:
        renderer: Any = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_plain_traceback)
    else:
        processors.append(structlog.processors.format_exc_info)
        renderer = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*processors, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )
    structlog.contextvars.bind_contextvars(component=component)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=processors))
    logging.basicConfig(handlers=[handler], level=max(logging.WARNING, logging.getLevelName(level.upper())), force=True)


def _plain_traceback(file: Any, exc_info: Any) -> None:
    # Rich tracebacks print local variables, and those may hold secrets.
    structlog.dev.plain_traceback(file, exc_info)
