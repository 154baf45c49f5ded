"""What a process does not load, because it takes time and memory and is of no use there."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("soundmark_sdk", {"numpy", "fastapi"}),
        ("soundmark.console.app", {"numpy", "fastapi", "opentelemetry"}),
        ("soundmark.audio.app", {"numpy", "fastapi", "opentelemetry"}),
        ("soundmark.core.worker", {"fastapi", "starlette", "requests", "opentelemetry"}),
        ("soundmark.audience.worker", {"fastapi", "starlette", "numpy", "opentelemetry"}),
        # FastAPI imports OpenTelemetry's interface. What records and sends is loaded where it is switched on.
        (
            "soundmark.core.app",
            {"requests", "urllib3", "jinja2", "procrastinate", "opentelemetry.sdk", "opentelemetry.exporter"},
        ),
        ("soundmark.audience.app", {"numpy", "opentelemetry.sdk", "opentelemetry.exporter"}),
        ("soundmark.cli.serve", {"opentelemetry", "email_validator"}),
    ],
)
def test_a_process_loads_no_library_that_it_does_not_use(module: str, unused: set[str]) -> None:
    assert _loaded_by(f"import {module}") & unused == set()


@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (["serve", "audio"], {"psycopg"}),
        (["serve", "console"], {"psycopg"}),
        (["work", "audience"], {"soundmark.core"}),
    ],
)
def test_a_command_loads_no_other_component_and_nothing_of_up(arguments: list[str], unused: set[str]) -> None:
    """Nor parts of libraries that it never uses. The command is refused for want of settings."""
    program = f"""\
from soundmark.cli import main
sys.argv[1:] = {arguments}
try: main()
except SystemExit: pass"""
    loaded = _loaded_by(program)
    assert "structlog" in loaded
    unused |= {"rich", "greenlet", "watchfiles", "soundmark.supervision", "soundmark.embedded"}
    assert loaded & unused == set()


def _loaded_by(program: str) -> set[str]:
    """Return the names of the modules that a process has loaded after `program`."""
    program = f"import sys\n{program}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    return set(done.stdout.split())
