"""docs/guides/leaving.md: every block on the page runs as printed, in order, on a whole deployment."""

import re
from pathlib import Path
from typing import get_args

import pytest
from soundmark_sdk import ArchiveFailure, CertificateFailure
from support.processes.guide_blocks import assert_prints, read_guide, run_block
from support.processes.up_process import Up

from soundmark.cli.leaving import ADVICE

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

PAGE, BLOCKS = read_guide("leaving.md")


@pytest.fixture(scope="module")
def checkout(up: Up, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a running `make up`, whose commands are on the path."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".soundmark").symlink_to(up.data_dir)
    return folder


def test_every_block_prints_the_output_on_the_page(up: Up, checkout: Path) -> None:
    url = up.where["base_url"]
    for language, block, printed in BLOCKS:
        assert_prints(printed, run_block(language, block, checkout, url), url)


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
