"""The log: one event per line, without secrets."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from soundmark.kit.log import TextRenderer

# Configuring the log affects the whole process, so each test starts its own.
_PREAMBLE = """
import logging, structlog
from soundmark.kit import log
from soundmark.kit.crypto.secret import Secret
log.configure(level={level!r}, log_format={log_format!r}, component="core")
logger = structlog.get_logger()
"""


def logged(body: str, *, level: str = "info", log_format: str | None = "json") -> list[str]:
    """Return what a process writes to standard error."""
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


def test_without_a_terminal_the_log_is_json() -> None:
    (event,) = events('logger.info("started")', log_format=None)
    assert event["event"] == "started"


def test_text_can_be_chosen() -> None:
    (line,) = logged('logger.info("started", port=8080)', log_format="text")
    assert "started" in line
    assert "port=8080" in line
    assert "\x1b" not in line, "colours are for terminals"


def test_a_request_is_one_short_line() -> None:
    """Two wrapped lines for each request drowned what a person at the terminal needed to read."""
    request = (
        'logger.warning("request", request_id="req_1", method="POST", route="/v1/codes", status=422, duration_ms=12.3)'
    )
    (line,) = logged(request, log_format="text")
    moment, rest = line.split(" ", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", moment)
    assert rest == "core     422 POST /v1/codes 12.3 ms req_1"
    (line,) = logged('logger.info("request", method="GET", route=None, status=404, duration_ms=0.2)', log_format="text")
    assert line.endswith(" 404 GET - 0.2 ms")


def test_another_event_is_one_line_with_its_level() -> None:
    (line,) = logged('logger.error("lookup_failed", error="Timeout", count=3, note="two words")', log_format="text")
    assert line.endswith("core     error lookup_failed error=Timeout count=3 note='two words'")
    (line,) = logged('logging.getLogger("library").warning("lost %s", 3)', log_format="text")
    assert line.endswith("core     warning lost 3")


def test_no_value_begins_a_line_or_moves_the_cursor(subtests: pytest.Subtests) -> None:
    for text in ["two\nlines", "a\rb", "\x1b[2J", "\u2028"]:
        with subtests.test(text=text):
            body = f'logger.info("told", value={text!r}, values=[{text!r}]); logging.getLogger("l").warning({text!r})'
            lines = logged(body, log_format="text")
            assert len(lines) == 2
            assert text not in "".join(lines)


def test_a_traceback_of_text_stands_below_its_line() -> None:
    body = 'try:\n    1 / 0\nexcept ZeroDivisionError:\n    logger.exception("failed", a=1)'
    first, second, *_, last = logged(body, log_format="text")
    assert first.endswith("error failed a=1")
    assert second == "Traceback (most recent call last):"
    assert last == "ZeroDivisionError: division by zero"


def test_a_terminal_shows_the_time_alone_and_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)

    def rendered(**event: str) -> str:
        moment = {"timestamp": "2026-11-22T10:48:36.123456Z", "component": "core"}
        return TextRenderer(is_terminal=True)(None, "", {**moment, **event})

    assert rendered(level="info", event="started") == "10:48:36Z core     started"
    assert rendered(level="warning", event="late") == "\x1b[33m10:48:36Z core     warning late\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert rendered(level="error", event="broken") == "10:48:36Z core     error broken"


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_every_line_has_the_id_of_its_trace(log_format: str) -> None:
    """Those of libraries too."""
    body = """
from soundmark.kit.tracing.context import TraceContext, current
current.set(TraceContext("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7", 0))
logger.info("request", request_id="req_1", method="GET", route="/v1/keys", status=200, duration_ms=1.0)
logger.error("failed")
logging.getLogger("library").warning("lost %s", 3)
"""
    member = {
        "json": '"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736"',
        "text": " trace_id=4bf92f3577b34da6a3ce929d0e0e4736",
    }
    lines = logged(body, log_format=log_format)
    assert [member[log_format] in line for line in lines] == [True, True, True]


def test_events_below_the_level_are_left_out() -> None:
    body = 'logger.debug("one"); logger.info("two"); logger.warning("three"); logger.error("four")'
    assert [event["event"] for event in events(body, level="warning")] == ["three", "four"]
    assert len(events(body, level="debug")) == 4


def test_a_library_warns_in_the_same_form() -> None:
    (event,) = events('logging.getLogger("psycopg.pool").warning("lost %s", 3)')
    assert (event["event"], event["level"], event["component"]) == ("lost 3", "warning", "core")


def test_a_library_logs_no_details() -> None:
    assert events('logging.getLogger("httpx2").info("GET http://audio/ 200")') == []


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_secret_never_appears(log_format: str) -> None:
    """Neither as a value, nor inside one, nor as a local variable of a traceback's frame."""
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


@pytest.mark.parametrize("fault", ["a full disk", "a closed pipe", "no standard error"])
def test_a_log_that_cannot_be_written_stops_nothing(fault: str) -> None:
    """Otherwise a full disk of the log would fail every request, and end the tasks that restart processes."""
    redirection = {"a full disk": "2>/dev/full", "a closed pipe": "2>&1 >&3 3>&- | true", "no standard error": "2>&-"}
    body = 'for _ in range(1000):\n    logger.info("request", path="/" * 100)\nprint("went on", flush=True)'
    script = _PREAMBLE.format(level="info", log_format="json") + body
    shell = f'exec 3>&1; "$0" -c "$1" {redirection[fault]}'
    done = subprocess.run(["/bin/sh", "-c", shell, sys.executable, script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("went on\n", "")
