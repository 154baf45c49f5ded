"""docs/guides/mastering.md: each block runs as printed, and prints the output on the page."""

import json
import re
from pathlib import Path

from support.api.core_settings import OPERATOR_TOKEN
from support.processes.guide_blocks import read_guide, run_block

from .conftest import Service

PAGE, BLOCKS = read_guide("mastering.md")


def test_the_blocks_print_the_output_on_the_page(service: Service, tmp_path: Path) -> None:
    (tmp_path / ".soundmark").mkdir()
    up = tmp_path / ".soundmark" / "up.json"
    up.touch(mode=0o600)
    up.write_text(json.dumps({"base_url": service.url, "operator_token": OPERATOR_TOKEN}))
    assert len(BLOCKS) == 2
    for language, block, printed in BLOCKS:
        out = run_block(language, block, tmp_path, service.url)
        # `…` stands for the whole table.
        assert re.fullmatch(re.escape(printed).replace("…", "(?s:.+)"), out), out
    assert out.count("good") == 2
