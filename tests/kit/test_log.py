"""The log: one event a line, and no secret in it."""

import json
import subprocess
import sys
from typing import Any

import pytest

# Configuring a log is for the whole process, so each test has a process of its own.
_PREAMBLE = """
import logging, structlog
from soundmark.kit import log
from soundmark.kit.secret import Secret
log.configure(level={level!r}, log_format={log_format!r}, component="core")
logger = structlog.get_logger()
"""


def logged(body: str, *, level: str = "info", log_format: str | None = "json") -> list[str]:
    """What a process writes to standard error."""
    script = _PREAMBLE.format(level=level, log_format=log_format) + body
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    return done.stderr.splitlines()


def events(body: str, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged(body, **options)]


def test_an_event_is_one_line_of_json() -> None:
    (event,) = events('logger.info("code_issued", xr_id="xr_1", note="two\\nlines")')
    moment = event.pop("timestamp")
    assert moment.endswith("Z")
    assert event == {
        "event": "code_issued",
        "level": "info",
        "component": "core",
        "xr_id": "xr_1",
        "note": "two\nlines",
    }


def test_what_is_not_a_terminal_gets_json() -> None:
    (event,) = events('logger.info("started")', log_format=None)
    assert event["event"] == "started"


def test_text_can_be_chosen() -> None:
    (line,) = logged('logger.info("started", port=8080)', log_format="text")
    assert "started" in line
    assert "port=8080" in line
    assert "\x1b" not in line, "colours are for terminals"


def test_what_is_below_the_level_is_left_out() -> None:
    body = 'logger.debug("one"); logger.info("two"); logger.warning("three"); logger.error("four")'
    assert [event["event"] for event in events(body, level="warning")] == ["three", "four"]
    assert len(events(body, level="debug")) == 4


def test_a_library_warns_in_the_same_form() -> None:
    (event,) = events('logging.getLogger("psycopg.pool").warning("lost %s", 3)')
    assert (event["event"], event["level"], event["component"]) == ("lost 3", "warning", "core")


def test_a_library_does_not_chatter() -> None:
    assert events('logging.getLogger("httpx").info("GET http://audio/ 200")') == []


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_secret_never_appears(log_format: str) -> None:
    """Neither as a value, nor inside one, nor as a local variable of a frame in a traceback."""
    body = """
def fail(secret, text):
    plain = text
    raise LookupError("something")
secret = Secret("hun" + "ter-two")
logger.info("one", secret=secret, secrets=[secret], nested={"a": secret})
try:
    fail(secret, secret.reveal())
except LookupError:
    logger.exception("failed")
logging.getLogger("library").error("told %s", secret)
"""
    lines = logged(body, log_format=log_format)
    assert "hunter-two" not in "\n".join(lines)
    assert any("LookupError: something" in line for line in lines)
    assert any("Secret(***)" in line for line in lines)


def test_a_traceback_stays_on_its_line() -> None:
    body = """
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("failed")
"""
    (event,) = events(body)
    assert "ZeroDivisionError" in event["exception"]
