"""The commands on the pages for contributors work as they stand there."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PAGES: Final = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "contributing").glob("*.md"))]
# What runs a command in the other tests, or in every run of CI.
RUN_BY: Final = {
    "make test-install": ".ci/run",
    "make fmt": "Makefile",  # What `make lint` accepts, which CI runs.
    "make test": ".ci/run",
    "make dist": "tests/distributions/test_archives.py",
    "make dev": "tests/supervision/test_up_reload.py",
    "make dev UP='--sandbox'": "tests/supervision/test_up_reload.py",
    ".venv/bin/soundmark demo --fill": "tests/supervision/test_up_sandbox.py",
    ".venv/bin/python tests/golden_files.py": "tests/core/published/contract/test_golden.py",
    "set -a; . .soundmark/core.env; set +a": "tests/supervision/test_up_reload.py",
    ".venv/bin/python -m pdb -m soundmark serve core --port 8181": "tests/supervision/test_up_reload.py",
}
ONE_FILE: Final = re.compile(r"make t FILE=(\S+)")


def commands() -> set[str]:
    """Return every line of every block for a shell, without remarks."""
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]
    lines = {re.sub(r"\s+#.*", "", line) for block in blocks for line in block.splitlines()}
    return {line for line in lines if line}


def test_every_command_is_run_somewhere() -> None:
    assert {command for command in commands() if not ONE_FILE.match(command)} == set(RUN_BY)
    assert [path for path in RUN_BY.values() if not (ROOT / path).exists()] == []


def test_every_file_of_tests_that_a_page_names_exists() -> None:
    named = {path for page in PAGES for path in ONE_FILE.findall(page.read_text("utf-8").replace("`", " "))}
    assert len(named) > 5
    assert [path for path in named - {"…"} if not (ROOT / path).exists()] == []


def run(*arguments: str) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=ROOT, check=False, capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_one_file_is_run_as_the_page_says() -> None:
    assert re.search(r"^\d+ passed\b", run("t", "FILE=tests/kit/text/test_months.py"), re.MULTILINE)


@pytest.mark.parametrize("arguments", [(), ("help",)])
def test_make_lists_every_target_that_has_a_remark(arguments: tuple[str, ...]) -> None:
    listed = re.findall(r"^  make ([a-z-]+) +\S", run(*arguments), re.MULTILINE)
    assert {"help", "up", "dev", "t", "test", "lint", "fmt", "bench"} <= set(listed)
    assert listed == re.findall(r"^([a-z-]+):.*  ## ", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
