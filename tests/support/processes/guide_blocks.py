"""The blocks of a page, run as a reader runs them: in order, in a checkout with a running `up`."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from support.processes.command_server import share_command_server
from support.processes.up_process import clean_environ, status_of, until

ROOT: Final = Path(__file__).parents[3]
SERVICE: Final = "http://127.0.0.1:8080"
# The language, a block, and the block right below it with its output, if there is one.
_BLOCKS: Final = re.compile(r"^```(python|sh)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
# A block begins in the folder and with the variables that the one before it left in the terminal.
_IN_TERMINAL: Final = '. "$TERMINAL"\n{block}\n{{ printf \'cd "%s"\\n\' "$PWD"; export -p; }} > "$TERMINAL"\n'


def read_page(name: str) -> tuple[str, list[tuple[str, str, str]]]:
    """Return a page, and its blocks: the language, the block, and its output, empty if the page does not show it."""
    page = (ROOT / name).read_text(encoding="utf-8")
    return page, _BLOCKS.findall(page)


class Reader:
    """Somebody who follows pages in one terminal, in a checkout where `up` serves `service`, with the commands there.

    `ports` are those to use instead of the ones on the pages, which the machine may use for something else.
    """

    def __init__(self, checkout: Path, service: str, ports: Mapping[str, str] | None = None) -> None:
        self.checkout = checkout
        self.background = checkout / "background.txt"
        self._replaced: Final = {SERVICE: service, **(ports or {})}
        self._started: list[subprocess.Popen[bytes]] = []
        self._terminal: Final = checkout / "terminal"
        self._terminal.touch()
        _write_commands(checkout / ".venv" / "bin")

    def follow(self, language: str, block: str, printed: str) -> None:
        """Run a block, which must succeed and print the output on the page, if the page shows it."""
        out = self.run(language, block)
        if printed:
            assert_prints(self._write(printed), out)

    def run(self, language: str, block: str) -> str:
        """Return the output of a block, which must succeed without warnings. A server runs on in the background."""
        written = self._write(block)
        script = self.checkout / f"program.{language}"
        script.write_text(_IN_TERMINAL.format(block=written) if language == "sh" else written, encoding="utf-8")
        command = ["sh", "-eu", str(script)] if language == "sh" else [sys.executable, "-W", "error", str(script)]
        if "uvicorn" in written:
            self._run_in_the_background(command, f"http://127.0.0.1:{written.partition('--port ')[2].split()[0]}")
            return ""
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=100, cwd=self.checkout, env=self._environ()
        )
        assert (done.returncode, done.stderr) == (0, ""), (block, done)
        return done.stdout

    def settings(self) -> dict[str, str]:
        """Return the environment variables of the reader's terminal, once a page has made some."""
        file = self.checkout / ".soundmark" / "measuring" / "publisher.env"
        lines = file.read_text().splitlines() if file.exists() else []
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def close(self) -> None:
        """End what runs in the background, also what the blocks themselves started."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(20)
        for file in (self.checkout / ".soundmark" / "webhooks").glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGTERM)

    def _write(self, text: str) -> str:
        for old, new in self._replaced.items():
            text = text.replace(old, new)
        return text

    def _run_in_the_background(self, command: list[str], url: str) -> None:
        with self.background.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=self.checkout, env=self._environ(), stdout=output, stderr=output, start_new_session=True
            )
        self._started.append(process)
        until(lambda: status_of(f"{url}/healthz") == 200, 60)

    def _environ(self) -> dict[str, str]:
        path = f"{self.checkout / '.venv' / 'bin'}:{os.environ['PATH']}"
        home = {"XDG_CONFIG_HOME": str(self.checkout / "config"), "XDG_STATE_HOME": str(self.checkout / "state")}
        return clean_environ({**home, **self.settings(), "PATH": path, "TERMINAL": str(self._terminal)})


def assert_prints(printed: str, out: str) -> None:
    """Compare the output of a block with the page, where `…` stands for what differs: within a line, or whole lines."""
    lines = ["(?s:.+)" if line == "…" else re.escape(line).replace("…", ".+") for line in printed.split("\n")]
    pattern = "\n".join(lines)
    assert re.fullmatch(pattern, out), out


def _write_commands(folder: Path) -> None:
    """Put the commands of a checkout into its `bin`: `soundmark` in a fork, without the time that imports take."""
    folder.mkdir(parents=True, exist_ok=True)
    programs = {
        "soundmark": str(share_command_server().parent / "bin" / "soundmark"),
        "uvicorn": shlex.join([sys.executable, "-m", "uvicorn"]),
        **dict.fromkeys(("python", "python3"), sys.executable),
    }
    for name, command in programs.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        script.chmod(0o755)
