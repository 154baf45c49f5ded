"""docs/operating: each block of commands can be parsed, and names files and settings that exist."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from support.deployment.commands import ROOT

from soundmark import settings
from soundmark.kit.settings import environment_name

PAGES: Final = sorted((ROOT / "docs" / "operating").glob("*.md"))


def blocks(page: Path) -> list[str]:
    return re.findall(r"^ *```sh\n(.*?)^ *```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_every_block_of_commands_can_be_parsed(subtests: pytest.Subtests) -> None:
    assert len(PAGES) >= 8
    for page in PAGES:
        with subtests.test(page.name):
            for block in blocks(page):
                done = subprocess.run(
                    ["sh", "-n"], input=block, check=False, capture_output=True, text=True, timeout=60
                )
                assert done.returncode == 0, block


def test_every_file_of_deploy_that_a_page_names_exists() -> None:
    for page in PAGES:
        for name in re.findall(r"\bdeploy/[\w./*-]*[\w*/]", page.read_text("utf-8")):
            assert list(ROOT.glob(name.rstrip("/"))), f"{page.name}: {name}"


def test_every_setting_that_a_page_names_exists() -> None:
    known = {environment_name(name) for name in settings.NAMES}
    others = {"SOUNDMARK_", "SOUNDMARK_PORT", "SOUNDMARK_IMAGE"}  # A prefix, one of Kubernetes', and one of Compose.
    for page in PAGES:
        assert set(re.findall(r"SOUNDMARK_[A-Z_]*", page.read_text("utf-8"))) <= known | others, page.name


def test_every_file_of_deploy_has_a_page() -> None:
    """Folders by name: what nobody can find is not shipped."""
    text = "".join(page.read_text("utf-8") for page in PAGES)
    folders = sorted(path.name for path in (ROOT / "deploy").iterdir() if path.is_dir())
    assert [name for name in folders if f"deploy/{name}" not in text and name != "image"] == []
