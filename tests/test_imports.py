"""What a process does not load, because it takes time and memory and is of no use there."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("soundmark_sdk", {"numpy", "fastapi"}),
        ("soundmark.console.app", {"numpy", "fastapi", "opentelemetry"}),
        ("soundmark.audio.app", {"fastapi", "opentelemetry"}),
        ("soundmark.core.worker", {"fastapi", "starlette", "opentelemetry"}),
        ("soundmark.audience.worker", {"fastapi", "starlette", "numpy", "opentelemetry"}),
        # FastAPI imports OpenTelemetry's interface. What records and sends is loaded where it is switched on.
        ("soundmark.core.app", {"opentelemetry.sdk", "opentelemetry.exporter"}),
        ("soundmark.audience.app", {"opentelemetry.sdk", "opentelemetry.exporter"}),
        ("soundmark.cli.serve", {"opentelemetry"}),
    ],
)
def test_a_process_loads_no_library_that_it_does_not_use(module: str, unused: set[str]) -> None:
    program = f"import sys; import {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & unused == set()
