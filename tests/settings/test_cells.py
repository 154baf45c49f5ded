"""The file of cells among the settings of Core."""

import json
from pathlib import Path
from typing import Any

import pytest

from soundmark import settings
from soundmark.kit.settings import SettingsInvalid
from soundmark.settings.cells import find_version, read_cells

CELL = {"name": "main", "url": "https://cell.example", "credential": "c" * 16, "takes_new": True}
OTHER = {**CELL, "name": "cell-2", "url": "https://cell-2.example"}
DATABASE = {"SOUNDMARK_CORE_DATABASE_URL": "postgresql://core@db/core"}
ONE = {"SOUNDMARK_AUDIENCE_URL": "https://audience.example", "SOUNDMARK_AUDIENCE_CREDENTIAL": "c" * 16}


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def faults_of(environ: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsInvalid) as refused:
        settings.read(settings.CellCommandSettings, {**DATABASE, **environ})
    return refused.value.faults


def test_a_file_takes_the_place_of_the_one_audience(tmp_path: Path) -> None:
    file = written(tmp_path / "cells.json", [CELL, OTHER])
    given = settings.read(settings.CellCommandSettings, {**DATABASE, "SOUNDMARK_AUDIENCE_CELLS_FILE": str(file)})
    assert (given.audience_cells_file, given.audience_url, given.audience_credential) == (file, None, None)
    assert [cell.name for cell in read_cells(file)] == ["main", "cell-2"]


def test_one_of_the_two_ways_is_set_and_all_faults_are_named(tmp_path: Path) -> None:
    file = {"SOUNDMARK_AUDIENCE_CELLS_FILE": str(written(tmp_path / "cells.json", [CELL]))}
    assert faults_of({}) == ["SOUNDMARK_AUDIENCE_URL: is not set", "SOUNDMARK_AUDIENCE_CREDENTIAL: is not set"]
    beside = "cannot be set beside SOUNDMARK_AUDIENCE_CELLS_FILE"
    assert faults_of({**file, **ONE}) == [f"{name}: {beside}" for name in ONE]
    missing = {"SOUNDMARK_AUDIENCE_CELLS_FILE": str(tmp_path / "none.json")}
    assert faults_of(missing) == ["SOUNDMARK_AUDIENCE_CELLS_FILE: cannot be read: No such file or directory"]
    assert faults_of({"SOUNDMARK_AUDIENCE_CELLS_FILE": "cells.json"}) == [
        "SOUNDMARK_AUDIENCE_CELLS_FILE: must be an absolute path"
    ]


def test_a_wrong_file_is_refused_without_its_credential(tmp_path: Path, subtests: pytest.Subtests) -> None:
    file = tmp_path / "cells.json"
    for content, message in {
        "": "Invalid JSON",
        "{": "Invalid JSON",
        "{}": "valid array",
        "[]": "at least 1 item",
        json.dumps([CELL, {**OTHER, "name": "Cell"}]): "cell 2: name: String should match",
        json.dumps([{**CELL, "name": ""}]): "cell 1: name",
        json.dumps([{**CELL, "name": "n" * 41}]): "cell 1: name",
        json.dumps([{**CELL, "url": "ftp://cell"}]): "cell 1: url",
        json.dumps([{**CELL, "url": "http://169.254.169.254"}]): "cell 1: url",
        json.dumps([{**CELL, "credential": "secret"}]): "cell 1: credential: must be one credential",
        json.dumps([{**CELL, "takes_new": "yes"}]): "cell 1: takes_new: Input should be a valid boolean",
        json.dumps([{**CELL, "more": 1}]): "cell 1: more: Extra inputs",
        json.dumps([{"name": "main"}]): "cell 1: url: Field required",
        json.dumps([CELL, {**OTHER, "name": "main"}]): "two cells have the same name",
        json.dumps([CELL, {**OTHER, "url": CELL["url"]}]): "two cells have the same url",
        " " * (1024 * 1024 + 1): "is larger than 1 MiB",
    }.items():
        with subtests.test(message=message):
            with pytest.raises(ValueError, match=message) as refused:
                read_cells(written(file, content))
            assert "secret" not in str(refused.value)


def test_every_change_of_the_file_is_a_version(tmp_path: Path) -> None:
    file = written(tmp_path / "cells.json", [CELL])
    first = find_version(file)
    assert find_version(file) == first
    written(tmp_path / "next.json", [CELL]).replace(file)
    assert find_version(file) != first
    file.unlink()
    with pytest.raises(ValueError, match="No such file"):
        find_version(file)
