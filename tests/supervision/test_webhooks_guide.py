"""docs/guides/webhooks.md: every block on the page runs as printed, in order, on an `up` with a consumer beside it."""

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.guide_blocks import assert_prints, read_guide, run_block
from support.processes.up_process import Up

from soundmark.core.domain.webhooks.delivery import RETRY_AFTER
from soundmark.core.domain.webhooks.event import EVENT_TYPES
from soundmark.kit.http.server.sockets import reserve_port

pytestmark = [pytest.mark.xdist_group("up"), pytest.mark.timeout(300)]

PAGE, BLOCKS = read_guide("webhooks.md")
PORT = "9292"


@pytest.fixture
def checkout(up: Up, tmp_path: Path) -> Iterator[Path]:
    """A folder in which the blocks leave their files; what they started in the background ends with the test."""
    (tmp_path / ".soundmark").symlink_to(up.data_dir)
    yield tmp_path
    for file in tmp_path.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGTERM)


def test_every_block_prints_the_output_on_the_page(up: Up, checkout: Path) -> None:
    url = up.where["base_url"]
    with reserve_port("127.0.0.1", 0) as held:
        port = str(held.getsockname()[1])
    for language, block, printed in BLOCKS:
        shown = run_block(language, block.replace(PORT, port), checkout, url)
        assert_prints(printed.replace(PORT, port), shown, url)
    assert (checkout / "consumer.log").read_text().count("malformed") == 0


def test_no_block_is_left_out() -> None:
    assert len(BLOCKS) == PAGE.count("```python") + PAGE.count("```sh") > 8


def test_the_page_names_every_type_and_every_pause() -> None:
    rows = re.findall(r"^\| (`[a-z_]+\.[^|]*) \|", PAGE, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([a-z_]+\.[a-z_]+)`", row)]
    assert sorted(named) == sorted(EVENT_TYPES)
    assert len(re.findall(r"^\| \d \|", PAGE, re.MULTILINE)) == len(RETRY_AFTER) + 1
