"""docs/guides/leaving.md: every block on the page runs as printed, in order, on a whole deployment."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, get_args

import pytest
from soundmark_sdk import ArchiveFailure, CertificateFailure
from support.up_process import Up, clean_environ

from soundmark.cli.leaving import ADVICE

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

PAGE: Final = (Path(__file__).parents[2] / "docs" / "guides" / "leaving.md").read_text(encoding="utf-8")
SERVICE: Final = "http://127.0.0.1:8080"
# The language, a block, and the block below it with its output.
BLOCKS: Final = re.findall(r"^```(python|sh)\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def checkout(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a running `make up`, whose commands are on the path."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".soundmark").symlink_to(up.data_dir)
    return folder


def run(language: str, block: str, checkout: Path, url: str) -> str:
    """Return the output of a block, which must succeed without warnings."""
    program = block.replace(SERVICE, url)
    command = [sys.executable, "-W", "error", "-c", program] if language == "python" else ["sh", "-eu", "-c", program]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
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


def test_every_block_prints_the_output_on_the_page(up: Up, checkout: Path) -> None:
    url = up.where["base_url"]
    for language, block, printed in BLOCKS:
        pattern = re.escape(printed.replace(SERVICE, url)).replace("…", ".+")
        out = run(language, block, checkout, url)
        assert re.fullmatch(pattern, out), (block, out)


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.count("```python") + PAGE.count("```sh") > 5


def list_rows(heading: str) -> list[str]:
    """Return the names in the first column of the table in a section."""
    section = PAGE[PAGE.index(f"\n## {heading}\n") :].partition("\n## ")[2]
    return re.findall(r"^\| `(\w+)` \| \S.*\|$", section.partition("\n## ")[0], re.MULTILINE)


def test_the_tables_of_failures_are_the_closed_sets() -> None:
    assert list_rows("Check what you took") == list(get_args(ArchiveFailure))
    assert list_rows("Check the proof") == list(get_args(CertificateFailure))
    assert list_rows("See what would be deleted") == list(ADVICE)
