"""How documents of the repository become pages of the site."""

import importlib.util
import sys
from types import ModuleType

import pytest
from support.processes.guide_blocks import ROOT


@pytest.fixture(scope="module")
def collect() -> ModuleType:
    """The script that `make docs` runs, which is in no package."""
    folder = ROOT / "docs" / "site"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("collect", folder / "collect.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module


PLACES = {"README.md": "index.md", "docs/sound.md": "sound.md", "docs/guides/issuing.md": "guides/issuing.md"}


@pytest.mark.parametrize(
    ("source", "text", "page"),
    [
        ("README.md", "[a](docs/sound.md#codecs)", "[a](sound.md#codecs)"),
        ("docs/guides/issuing.md", "[a](../sound.md) ![b](../sound.md)", "[a](../sound.md) ![b](../sound.md)"),
        ("docs/guides/issuing.md", "[`a`](../../README.md)", "[`a`](../index.md)"),
        (
            "docs/sound.md",
            "[a file](../src/x.py), [a list[0]](guides/issuing.md)",
            "a file, [a list[0]](guides/issuing.md)",
        ),
        ("docs/sound.md", "[a](https://example.org) [b](#c)", "[a](https://example.org) [b](#c)"),
        ("docs/sound.md", "```md\n[a](../src/x.py)\n```\n", "```md\n[a](../src/x.py)\n```\n"),
        ("docs/sound.md", "<!-- begin -->\n| a |", "| a |"),
        ("docs/sound.md", "- a\n  b\n\nc\n  d", "- a\n    b\n\nc\n  d"),
        (
            "docs/sound.md",
            "1. a\n\n   ```sh\n   b\n   ```\n10. c\n    d",
            "1. a\n\n    ```sh\n    b\n    ```\n10. c\n    d",
        ),
    ],
)
def test_links_and_lists_are_written_for_the_site(collect: ModuleType, source: str, text: str, page: str) -> None:
    assert collect.convert(text, source, PLACES) == page


def test_every_document_has_one_place(collect: ModuleType) -> None:
    places = collect.find_places()
    assert len(set(places.values())) == len(places)
    assert not [source for source in places if source.startswith("docs/site/")]
