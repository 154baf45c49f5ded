"""The blocks of a guide, run as a reader runs them: in order, in a checkout with a running `up`."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from support.processes.command_server import share_command_server
from support.processes.up_process import clean_environ

SERVICE: Final = "http://127.0.0.1:8080"
_GUIDES: Final = Path(__file__).parents[3] / "docs" / "guides"


def read_guide(name: str) -> tuple[str, list[tuple[str, str, str]]]:
    """Return a guide, and its blocks: the language, the block, and the block below it with its output."""
    page = (_GUIDES / name).read_text(encoding="utf-8")
    return page, re.findall(r"^```(python|sh)\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run_block(language: str, block: str, checkout: Path, url: str) -> str:
    """Return the output of a block, which must succeed without warnings. `url` is where `up` serves."""
    program = block.replace(SERVICE, url)
    command = [sys.executable, "-W", "error", "-c", program] if language == "python" else ["sh", "-eu", "-c", program]
    forked = share_command_server().parent / "bin"  # `soundmark` on the path, without the time that imports take.
    path = f"{forked}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
        cwd=checkout,
        env=clean_environ({"XDG_CONFIG_HOME": str(checkout / "config"), "PATH": path}),
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def assert_prints(printed: str, out: str, url: str) -> None:
    """Compare the output of a block with the page, on which `…` stands for what differs each time."""
    pattern = re.escape(printed.replace(SERVICE, url)).replace("…", ".+")
    assert re.fullmatch(pattern, out), out
