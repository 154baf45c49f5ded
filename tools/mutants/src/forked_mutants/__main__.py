"""Change one place of a module at a time, and see whether its tests notice: `python -m forked_mutants TABLE`.

A mutant that no test kills is printed and fails the run, unless the table says why it may live. One that is killed only
because its tests ran out of time is printed too: it deserves a second look on a busy machine.
"""

import argparse
import ast
import contextlib
import gc
import importlib
import os
import pkgutil
import sys
import time
import traceback
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final

from forked_mutants.loading import list_codes, load_instead, replace_codes
from forked_mutants.table import Subject, Table
from forked_mutants.trees import Mutant, list_mutants
from forked_mutants.trial import Trial

TIMEOUT_FACTOR: Final = 5
TIMEOUT_MIN_S: Final = 10
UNCHANGED_TIMEOUT_S: Final = 600


def main() -> int:
    parser = argparse.ArgumentParser(prog="forked_mutants", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("table", type=Path, help="The TOML file that names modules and their tests.")
    parser.add_argument("--only", default="", help="Only modules whose path contains this text.")
    parser.add_argument("--part", default="0/1", help="Every Nth mutant from the first number on, as in 1/4.")
    parser.add_argument("--check", action="store_true", help="Check the table, and run nothing.")
    arguments = parser.parse_args()
    table = Table.read(arguments.table)
    faults = [] if arguments.only else list(table.list_faults())
    print(*faults, sep="\n", end="\n" if faults else "")
    if arguments.check:
        return int(bool(faults))
    number, of = (int(each) for each in arguments.part.split("/"))
    sys.path[:0] = [str(Path(folder).resolve()) for folder in table.import_path]
    preload(table)
    tried = survived = 0
    with surroundings(table):
        for subject in table.list_subjects(arguments.only):
            began_s = time.perf_counter()
            count, survivors = Attempt(table, subject).run(number, of)
            tried, survived = tried + count, survived + survivors
            seconds = time.perf_counter() - began_s
            print(f"{shown(subject)}: {count} mutants, {survivors} live, {seconds:.0f} s", flush=True)
    print(f"{tried} mutants, {tried - survived} killed or explained, {survived} live")
    return int(survived > 0 or bool(faults))


def preload(table: Table) -> None:
    """Import what no subject can change. The garbage collector of a forked process passes it by."""
    for name in table.preloaded:
        importlib.import_module(name)
    for name in table.preloaded_packages:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)
    gc.freeze()


def load_shared(table: Table) -> None:
    """Import what the tests share, and with it the modules under test."""
    for name in table.list_shared():
        importlib.import_module(name)
    gc.freeze()


def surroundings(table: Table) -> contextlib.AbstractContextManager[None]:
    """Return what is open during the run, such as a database that all processes use."""
    if table.around is None:
        return contextlib.nullcontext()
    module, _, name = table.around.partition(":")
    context: contextlib.AbstractContextManager[None] = getattr(importlib.import_module(module), name)()
    return context


def shown(subject: Subject) -> Path:
    return subject.path.relative_to(Path.cwd())


class Attempt:
    """All mutants of one subject."""

    def __init__(self, table: Table, subject: Subject) -> None:
        self._table, self._subject = table, subject
        self._source = subject.path.read_text("utf-8")
        self._whole = list_codes(ast.parse(self._source))
        self._trial = Trial([*table.pytest, *subject.tests])

    def run(self, number: int, of: int) -> tuple[int, int]:
        """Try every mutant of a part; return how many these are, and how many live without a reason."""
        began_s = time.perf_counter()
        unchanged = partial(load_instead, self._subject, ast.parse(self._source))
        assert self._trial.passes(unchanged, UNCHANGED_TIMEOUT_S), f"without a change: {shown(self._subject)}"
        timeout_s = TIMEOUT_MIN_S + TIMEOUT_FACTOR * (time.perf_counter() - began_s)
        mutants = list_mutants(self._source)
        accepted = self._table.list_accepted(self._subject)
        for key in accepted - {mutant.key for mutant in mutants}:
            print(f"{shown(self._subject)}: accepted, but gone: {key}", flush=True)
        part = mutants[number::of]
        doubtful = [mutant for mutant in part if mutant.key not in accepted]
        survivors = 0
        for mutant in self._list_living(doubtful, timeout_s):
            if self._trial.passes(partial(load_instead, self._subject, mutant.tree), timeout_s):
                survivors += 1
                self._report(mutant, "")
            elif self._trial.is_timed_out:
                self._report(mutant, "out of time: ")
        return len(part), survivors

    def _list_living(self, mutants: Sequence[Mutant], timeout_s: float) -> list[Mutant]:
        """Return the mutants that live if only the code of the changed function is replaced, and all of other places.

        In a process that has loaded everything already, this takes half the time.
        """
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                load_shared(self._table)
                for mutant in mutants:
                    os.write(writing, b"1" if self._lives_as_code(mutant, timeout_s) else b"0")
            except BaseException:  # noqa: BLE001 - an error that went further would end what surrounds the whole run
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answers:
            killed = [answer == ord("0") for answer in answers.read()]
        os.waitpid(pid, 0)
        return [mutant for mutant, is_killed in zip_longest(mutants, killed) if not is_killed]

    def _lives_as_code(self, mutant: Mutant, timeout_s: float) -> bool:
        codes = {name: code for name, code in list_codes(mutant.tree).items() if code != self._whole.get(name)}
        if not codes or self._subject.module not in sys.modules:
            return True
        lives = self._trial.passes(partial(replace_codes, self._subject, codes), timeout_s)
        if self._trial.is_timed_out:
            self._report(mutant, "out of time: ")
        return lives

    def _report(self, mutant: Mutant, fate: str) -> None:
        print(f"{shown(self._subject)}:{mutant.line}: {fate}{mutant.key}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
