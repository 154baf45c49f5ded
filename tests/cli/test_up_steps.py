"""What `soundmark up` says while it starts: a line for each step that takes long, and nothing about the others."""

import asyncio
import io

import pytest
from rich.console import Console

from soundmark.cli import up


async def pass_timers() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_step_that_takes_long_leaves_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(up, "SLOW_S", 0)
    output = io.StringIO()
    console = Console(file=output)
    steps = up.SlowSteps(console, console.status("Starting ..."))
    steps.begin("Making the database")
    await pass_timers()
    assert output.getvalue() == "Making the database ...\n"
    steps.begin("Starting PostgreSQL")
    steps.end()
    await pass_timers()
    assert output.getvalue() == "Making the database ...\n", "it ended before"


async def test_it_takes_long_after_five_seconds() -> None:
    assert up.SLOW_S == 5
