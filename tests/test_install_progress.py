"""`scripts/pip-progress`: a minute of installing is not a minute of silence, and a failure is told whole."""

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


def test_what_is_done_is_said_in_a_line(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("structlog\n")  # Installed already: nothing is fetched.
    done = run("install", "--requirement", str(lock))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith(f"  {lock}: done in ")


def test_a_failure_shows_the_words_of_pip(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("no-such-package-anywhere==1.0\n")
    done = run("install", "--requirement", str(lock))
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == f"  {lock}: failed"
    assert "No matching distribution found for no-such-package-anywhere==1.0" in done.stderr


def test_on_a_terminal_one_line_is_written_over() -> None:
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
    except OSError:  # Nobody has the other end any more.
        return b""
