"""Each mutant is the module with exactly its own change."""

import ast
import difflib

from forked_mutants.trees import list_mutants

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
    changed = {mutant.key: ast.unparse(mutant.tree) for mutant in list_mutants(MODULE)}
    assert len(set(changed.values()) - {whole}) == len(changed) == 12
    for text in changed.values():
        assert sum(line.startswith("+ ") for line in difflib.ndiff(whole.splitlines(), text.splitlines())) == 1
    assert (
        "return 0 <= count <= LIMIT and name != 'two'" in changed["may_pass: 0 <= count < LIMIT -> 0 <= count <= LIMIT"]
    )
