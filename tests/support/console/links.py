"""The one-time links with which the operator signs in to the console of a running `soundmark up`."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from soundmark.kit.clock import SystemClock
from soundmark.operating_system.one_time_tickets import redeem_ticket
from support.processes.command_server import find_forked_soundmark
from support.processes.up_process import READY_S, Up, clean_environ, until

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/sign-in/link\?ticket=([A-Za-z0-9_-]{43})")


def ask_link(
    data_dir: Path, command: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `console link`: in a fork, unless `command` is another installation's."""
    arguments = [*(command or (find_forked_soundmark(),)), "console", "link", "--data-dir", str(data_dir)]
    return subprocess.run(arguments, check=False, capture_output=True, text=True, env=clean_environ(environ))


def refused_link(data_dir: Path, command: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> str:
    """Return the one line with which `console link` refuses."""
    done = ask_link(data_dir, command, environ)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    return line.removeprefix("soundmark: ")


def printed_link(up: Up) -> re.Match[str]:
    until(lambda: "  Private " in up.printed, READY_S)
    (line,) = [line for line in up.printed.splitlines() if line.startswith("  Sign in ")]
    found = LINK.fullmatch(line.removeprefix("  Sign in").strip().removesuffix("   (works once, within an hour)"))
    assert found is not None, line
    return found


def tickets_of(up: Up) -> Path:
    return Path(up.children()["serve console"].environ()["SOUNDMARK_CONSOLE_TICKETS_PATH"])


def redeem_as_owner(folder: Path, ticket: str) -> bool:
    """Redeem as the console does, whose user is not always ours."""
    owner = folder.stat().st_uid
    if owner == os.geteuid():
        return redeem_ticket(folder, ticket, SystemClock())
    os.seteuid(owner)
    try:
        return redeem_ticket(folder, ticket, SystemClock())
    finally:
        os.seteuid(0)
