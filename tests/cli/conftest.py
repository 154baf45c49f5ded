"""The real command in a process of its own, with an environment that only the test decides."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

COMMAND = (sys.executable, "-P", "-m", "soundmark")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def refusal(self) -> str:
        """The one line with which the command was refused."""
        assert (self.status, self.out) == (1, ""), self
        assert self.err.startswith("soundmark: "), self
        assert self.err.count("\n") == 1, self
        return self.err.removeprefix("soundmark: ").strip()


def run(*arguments: str, settings: Mapping[str, str] | None = None) -> Done:
    """Run `soundmark` to its end; `settings` by name without prefix."""
    done = subprocess.run(
        [*COMMAND, *arguments], check=False, capture_output=True, text=True, timeout=90, env=environ(settings or {})
    )
    return Done(done.returncode, done.stdout, done.stderr)


def environ(settings: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SOUNDMARK_")}
    return {**kept, **{f"SOUNDMARK_{name}": value for name, value in settings.items()}}
