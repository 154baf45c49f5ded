"""Drawing without the extra matplotlib: one line of error, and a demo without its picture."""

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console
from soundmark_sdk import Frame

from soundmark.cli import Refused, demo
from soundmark.cli.pictures import NoPictures, load_drawing


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """matplotlib cannot be imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("spectrogram", "report_picture"):
        monkeypatch.delitem(sys.modules, f"soundmark.cli.{name}", raising=False)
    # As Python marks a module that must not be found.
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.parametrize("name", ["spectrogram", "report_picture"])
@pytest.mark.usefixtures("without_matplotlib")
def test_a_missing_package_is_named_with_its_extra(name: str) -> None:
    with pytest.raises(
        NoPictures, match=r"the extra soundmark\[pictures\] installs; run `pip install matplotlib`"
    ) as no:
        load_drawing(name)
    assert isinstance(no.value, Refused)
    assert "\n" not in str(no.value)


def test_a_missing_module_of_our_own_is_an_internal_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"soundmark\.cli\.unheard_of"):
        load_drawing("unheard_of")


@pytest.mark.usefixtures("without_matplotlib")
def test_the_demo_goes_on_without_its_picture(tmp_path: Path) -> None:
    output = io.StringIO()
    steps = demo._Steps(Console(file=output))
    demo._draw(steps, Frame("XRC1:brd_aZ09-_bY18-_cX27", "brd_aZ09-_bY18-_cX27"), tmp_path / "demo.wav")
    assert output.getvalue().startswith("No picture: drawing needs matplotlib")
    assert not list(tmp_path.iterdir())
