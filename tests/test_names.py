"""Names: each class name has one meaning, and no module has a meaningless name."""

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest
import soundmark_sdk

import soundmark

SOURCE: Final = Path(soundmark.__file__).parent
COMPONENTS: Final = {
    **{
        name: SOURCE / name
        for name in ("core", "audience", "audio", "console", "kit", "cli", "wire", "settings", "sandbox", "studio")
    },
    "supervision": SOURCE / "supervision",
    "embedded": SOURCE / "embedded",
    "soundmark_sdk": Path(soundmark_sdk.__file__).parent,
}
TESTS: Final = Path(__file__).parent
MEANINGLESS: Final = {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}


def class_names(folder: Path) -> dict[str, list[str]]:
    """Return the classes below a folder, and the modules that define each."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(folder)))
    return found


def test_no_two_classes_of_a_component_share_a_name(subtests: pytest.Subtests) -> None:
    for component in COMPONENTS:
        with subtests.test(component=component):
            found = class_names(COMPONENTS[component])
            assert found or component == "audio", "it has functions alone"
            # The blocking half of the SDK is generated from the asynchronous one, so its classes have the same names.
            places = {name: {path.replace("_sync", "_async") for path in where} for name, where in found.items()}
            assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_module_has_a_meaningless_name() -> None:
    names = {path.stem for folder in COMPONENTS.values() for path in folder.rglob("*.py")}
    assert len(names) > 200
    assert names & MEANINGLESS == set()


def test_no_two_lists_share_a_name_so_that_a_cursor_works_in_one_list_only() -> None:
    routes = [path.read_text(encoding="utf-8") for path in (SOURCE / "core" / "features").rglob("routes.py")]
    names = re.findall(r'cursors\.bind\(\s*"([\w-]+)"', "".join(routes))
    assert len(names) == "".join(routes).count("cursors.bind(") > 1
    assert len(set(names)) == len(names)


def test_every_fixture_says_what_it_is() -> None:
    fixtures = [
        (f"{path.relative_to(TESTS)}::{node.name}", ast.get_docstring(node))
        for path in TESTS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(ast.unparse(each).startswith("pytest.fixture") for each in node.decorator_list)
    ]
    assert len(fixtures) > 200
    assert [name for name, docstring in fixtures if docstring is None] == []
