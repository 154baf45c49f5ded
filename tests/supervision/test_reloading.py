"""`up --reload`: which processes a change restarts."""

import asyncio
import os
from pathlib import Path

import pytest
import soundmark_sdk

import soundmark
from soundmark.kit.clock import SystemClock
from soundmark.supervision import reloading
from soundmark.supervision.reloading import CannotReload, programs_of, require_watcher
from soundmark.supervision.supervisor import Supervisor

SOURCE = Path(soundmark.__file__).parent
RUNNING = ["audio", "console", "PostgreSQL", "core", "audience", "core jobs", "audience jobs", "sandbox"]


@pytest.mark.parametrize(
    ("path", "restarted"),
    [
        (SOURCE / "core" / "domain" / "quota.py", {"core", "core jobs"}),
        (SOURCE / "console" / "templates" / "page.html", {"console"}),
        (Path(soundmark_sdk.__file__).parent / "client" / "errors.py", {"console"}),
        (SOURCE / "kit" / "clock.py", set(RUNNING) - {"PostgreSQL"}),
        (SOURCE / "supervision" / "up.py", set()),
    ],
)
def test_a_change_restarts_what_imports_the_file(path: Path, restarted: set[str]) -> None:
    assert set(programs_of([path], RUNNING)) == restarted


def test_what_does_not_run_is_not_restarted() -> None:
    assert programs_of([SOURCE / "sandbox" / "app.py"], ["core", "console"]) == []


async def test_files_are_watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file that is written in a watched folder reaches the supervisor as the restart of its program."""
    folder = tmp_path / "core"
    folder.mkdir()
    monkeypatch.setattr(reloading, "_SOURCE", tmp_path)
    monkeypatch.setattr(reloading, "_SDK", folder)
    monkeypatch.setattr(reloading, "_PROGRAMS", {folder: ("core",)})
    restarted: asyncio.Queue[list[str]] = asyncio.Queue()

    class Recorder(Supervisor):
        def names(self) -> list[str]:
            return ["core", "console"]

        async def restart(self, names: list[str]) -> None:  # type: ignore[override]  # a list is what it is given
            await restarted.put(names)

    watching = asyncio.create_task(reloading.restart_what_changes(Recorder(SystemClock())))
    try:
        async with asyncio.timeout(30):
            while restarted.empty():  # The watch begins some time after the task.
                (folder / "changed.py").write_text(f"{restarted.qsize()}{os.urandom(4).hex()}")
                await asyncio.wait({watching}, timeout=0.2)
        assert restarted.get_nowait() == ["core"]
    finally:
        watching.cancel()


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(CannotReload, match=r"soundmark\[reload\]"):
        require_watcher()
