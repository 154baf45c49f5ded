"""The blocking classes are generated from those for asyncio."""

import importlib.util
import shutil
from pathlib import Path

import pytest
import soundmark_sdk

PROGRAM = Path(__file__).parents[1] / "make_blocking.py"
PACKAGE = Path(soundmark_sdk.__file__).parent


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose blocking modules were generated just now."""
    spec = importlib.util.spec_from_file_location("make_blocking", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    copy = tmp_path_factory.mktemp("generated") / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("_sync", "__pycache__"))
    program.generate(copy)
    return copy


def read_blocking(package: Path) -> dict[str, str]:
    return {str(path.relative_to(package)): path.read_text("utf-8") for path in package.glob("**/_sync/*.py")}


def test_the_blocking_modules_are_those_that_the_generator_writes(generated: Path) -> None:
    assert read_blocking(PACKAGE) == read_blocking(generated), "run sdk/python/make_blocking.py"


def test_nothing_of_asyncio_is_left_in_them(generated: Path) -> None:
    """Except for the transport, which both forms share."""
    words = {"async ", "await ", "aclose", "_async.", "asyncio.", "AsyncRunner"}
    found = {(name, word) for name, text in read_blocking(generated).items() for word in words if word in text}
    assert found == set()
