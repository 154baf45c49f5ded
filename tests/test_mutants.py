"""`make mutants`: each mutant is the module with exactly its own change, in a process that has loaded the rest."""

import ast
import difflib
import subprocess
import sys
import tomllib
from pathlib import Path

from scripts import mutant_trees, mutants

ROOT = Path(__file__).resolve().parents[1]

MODULE = '''\
"""A module."""

LIMIT = 10
NAMES = frozenset({"one", "two"})


def may_pass(count: int, name: str) -> bool:
    """Return whether it may pass."""
    if name not in NAMES:
        raise ValueError(name)
    return 0 <= count < LIMIT and name != "two"
'''


def test_each_mutant_is_the_module_with_its_own_change() -> None:
    """A change that stayed in the module would be tried again under the name of every later mutant."""
    whole = ast.unparse(ast.parse(MODULE))
    changed = {mutant.key: ast.unparse(mutant.tree) for mutant in mutant_trees.list_mutants(MODULE)}
    assert len(set(changed.values()) - {whole}) == len(changed) == 12
    for text in changed.values():
        assert sum(line.startswith("+ ") for line in difflib.ndiff(whole.splitlines(), text.splitlines())) == 1
    assert (
        "return 0 <= count <= LIMIT and name != 'two'" in changed["may_pass: 0 <= count < LIMIT -> 0 <= count <= LIMIT"]
    )


def test_a_run_can_load_what_the_tests_share() -> None:
    command = "from scripts.mutants import load_everything; load_everything()"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_table_names_what_there_is() -> None:
    """A module that moved would no longer be tried."""
    table = tomllib.loads(mutants.TABLE.read_text("utf-8"))
    for entry in table["subject"]:
        assert [module for module in entry["modules"] if not list(ROOT.glob(module))] == []
        paths = [ROOT / test.partition("::")[0] for test in entry["tests"] if not test.startswith("-")]
        assert [path for path in paths if not path.exists()] == []
    assert [module for module in mutants.list_accepted() if not (ROOT / module).exists()] == []
