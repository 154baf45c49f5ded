"""Where the console finds the modules that browsers load."""

from pathlib import Path

import pytest

from soundmark.console import static_files
from soundmark.console.static_files import receiver_folder

REPOSITORY = Path(__file__).parents[3] / "sdk" / "js" / "src"


def test_a_checkout_serves_the_folder_that_is_edited() -> None:
    assert receiver_folder().samefile(REPOSITORY)


def test_an_installed_package_serves_what_it_carries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.js").touch()
    monkeypatch.setattr(static_files, "_IN_PACKAGE", tmp_path)
    assert receiver_folder() == tmp_path


def test_an_installation_without_the_modules_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_files, "_IN_PACKAGE", tmp_path)
    monkeypatch.setattr(static_files, "_IN_REPOSITORY", tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="soundmark-receiver is missing"):
        receiver_folder()
