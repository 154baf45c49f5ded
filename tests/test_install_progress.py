"""`scripts/pip-progress`: installing shows progress, and a failure is shown in full."""

import os
import pty
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "scripts" / "pip-progress"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PIP_NO_INDEX": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False, env=environ, timeout=60
    )


def test_progress_is_one_line(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("structlog\n")  # It is installed already, so nothing is downloaded.
    done = run("install", "--requirement", str(lock))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith(f"  {lock}: done in ")


def test_a_failure_shows_the_output_of_pip(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("no-such-package-anywhere==1.0\n")
    done = run("install", "--requirement", str(lock))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == f"  {lock}: failed"
    assert "No matching distribution found for no-such-package-anywhere==1.0" in done.stderr


def test_on_a_terminal_one_line_is_overwritten() -> None:
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, str(SCRIPT), "install", "structlog"],
        stdout=theirs,
        check=True,
        env={**os.environ, "PIP_NO_INDEX": "1"},
        timeout=60,
    )
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    assert shown.startswith(b"\r\x1b[K  Soundmark itself ...")
    assert shown.endswith(b"\r\n")
    assert shown.count(b"\n") == 1


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 4096)
    except OSError:  # The other end is closed.
        return b""
