"""docs/guides/venue.md: its blocks run as printed, and its table of metrics is complete."""

import json
import re
from pathlib import Path
from typing import Final

from support.api.core_settings import OPERATOR_TOKEN
from support.processes.guide_blocks import assert_prints, read_guide, run_block

from soundmark.studio.play.journal import Journal

from .conftest import Service

PAGE, BLOCKS = read_guide("venue.md")
TABLE: Final = re.compile(r"^\| `(soundmark_play_\w+)` \|", re.MULTILINE)


def test_the_blocks_print_the_output_on_the_page(service: Service, tmp_path: Path) -> None:
    (tmp_path / ".soundmark").mkdir()
    up = tmp_path / ".soundmark" / "up.json"
    up.touch(mode=0o600)
    up.write_text(json.dumps({"base_url": service.url, "operator_token": OPERATOR_TOKEN}))
    for language, block, printed in BLOCKS:
        # The state belongs into the reader's home folder.
        program = f"export XDG_STATE_HOME={tmp_path}\n{block}" if language == "sh" else block
        assert_prints(printed, run_block(language, program, tmp_path, service.url), service.url)


def test_the_page_names_every_metric() -> None:
    known = {
        metric.name + ("_total" if metric.type == "counter" else "")
        for metric in Journal(lambda _: None).registry.collect()
    }
    assert set(TABLE.findall(PAGE)) == known
