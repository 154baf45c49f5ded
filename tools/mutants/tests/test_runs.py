"""A run over a small project, and over the table of this repository."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOUNDMARK = "tools/mutants/soundmark.toml"

MODULE = """\
LIMIT = 10

def may_pass(count: int) -> bool:
    return count < LIMIT
"""
TESTS = """\
from rules import may_pass

def test_a_small_count_passes():
    assert may_pass(9)
    assert not may_pass(12)
"""
TABLE = """\
[run]
sources = ["src"]
rooms = ["src"]
import_path = ["src"]
shared = { folder = "src", except = [] }

[[subject]]
modules = ["src/rules.py"]
tests = ["test_rules.py"]
"""
ACCEPTED = """
[[accepted]]
module = "src/rules.py"
mutants = ["module: 10 -> 11", "may_pass: gone"]
because = "we chose it"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "rules.py").write_text(MODULE)
    (tmp_path / "test_rules.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src\n")
    (tmp_path / "table.toml").write_text(TABLE)
    return tmp_path


def run(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    path = str(Path(__file__).parents[1] / "src")
    done = subprocess.run(
        [sys.executable, "-m", "forked_mutants", *arguments],
        cwd=folder,
        env={"PYTHONPATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_mutant_that_no_test_kills_is_printed_and_fails_the_run(project: Path) -> None:
    status, lines = run(project, "table.toml")
    assert status == 1
    assert [line for line in lines if " s" not in line] == [
        "src/rules.py:1: module: 10 -> 11",
        "src/rules.py:4: may_pass: count < LIMIT -> count <= LIMIT",
        "3 mutants, 1 killed or explained, 2 live",
    ]


def test_an_accepted_mutant_is_not_tried_and_one_that_is_gone_is_printed(project: Path) -> None:
    (project / "table.toml").write_text(TABLE + ACCEPTED)
    status, lines = run(project, "table.toml")
    assert status == 1
    assert "src/rules.py: accepted, but gone: may_pass: gone" in lines
    assert lines[-1] == "3 mutants, 2 killed or explained, 1 live"


def test_a_run_whose_tests_notice_everything_succeeds(project: Path) -> None:
    (project / "test_rules.py").write_text(TESTS.replace("12", "10"))
    assert run(project, "table.toml", "--part", "0/1")[0] == 0


def test_the_check_names_what_has_moved(project: Path) -> None:
    assert run(project, "table.toml", "--check") == (0, [])
    (project / "src" / "rules.py").rename(project / "src" / "laws.py")
    (project / "test_rules.py").unlink()
    assert run(project, "table.toml", "--check") == (
        1,
        ["src/rules.py: no such module", "test_rules.py: no such test", "src/laws.py: no subject names it"],
    )


def test_the_table_of_this_repository_names_what_there_is() -> None:
    assert run(ROOT, SOUNDMARK, "--check") == (0, [])


def test_a_run_can_load_what_the_tests_of_this_repository_share() -> None:
    code = f"""
import sys, pathlib
from forked_mutants import __main__ as tool
table = tool.Table.read(pathlib.Path({SOUNDMARK!r}))
sys.path[:0] = [str(pathlib.Path(folder).resolve()) for folder in table.import_path]
tool.load_shared(table)
assert all(subject.module.partition(".")[0] in sys.modules for subject in table.list_subjects())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "tools/mutants/src")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
