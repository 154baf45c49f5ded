"""docs/guides/selling.md: every block on the page runs as printed, in order, on an `up --sandbox`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.guide_blocks import assert_prints, read_guide, run_block
from support.up_process import Up, running_up

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

PAGE, BLOCKS = read_guide("selling.md")


@pytest.fixture(scope="module")
def selling(seeded: Path) -> Iterator[Up]:
    """A running `up --sandbox`."""
    with running_up(seeded, arguments=("--port", "0", "--sandbox")) as running:
        yield running.until_ready()


def test_every_block_prints_the_output_on_the_page(selling: Up, tmp_path: Path) -> None:
    (tmp_path / ".soundmark").symlink_to(selling.data_dir)
    url = selling.where["base_url"]
    for language, block, printed in BLOCKS:
        assert_prints(printed, run_block(language, block, tmp_path, url), url)


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.count("```python") + PAGE.count("```sh") > 5
