"""Mutation runs: change one place of a module at a time, and see whether its tests notice.

`make mutants` runs every module that `scripts/mutants.toml` names, `make mutants ONLY=quota` those whose path contains
the word. A mutant that no test kills is printed and fails the run, unless the same file says why it may live. One that
is killed only because its tests ran out of time is printed too: it deserves a second look on a busy machine.
"""

import argparse
import ast
import gc
import importlib
import importlib.abc
import importlib.util
import inspect
import os
import pkgutil
import select
import signal
import sys
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from scripts.mutant_trees import Mutant, list_mutants
from scripts.mutants_cluster import shared_cluster

ROOT: Final = Path(__file__).resolve().parent.parent
TABLE: Final = ROOT / "scripts" / "mutants.toml"
SOURCES: Final = (ROOT / "src", ROOT / "sdk" / "python" / "src")
# Every module of these has a subject, unless it has nothing but records.
ROOMS: Final = tuple(
    f"src/soundmark/{room}" for room in ("core/domain", "core/access", "core/hot", "audience/domain", "audience/hot")
)
# Imported once, before the processes of the mutants are forked; these then import the tests and the rest.
PRELOADED: Final = (
    *(
        "pytest",
        "pytest_asyncio.plugin",
        "_hypothesis_pytestplugin",
        "anyio.pytest_plugin",
        "schemathesis.pytest.plugin",
    ),
    *("hypothesis", "jsonschema_rs", "psycopg", "httpx2", "cryptography", "jwt", "nacl", "numpy", "rfc8785", "msgspec"),
    *("fastapi", "procrastinate", "prometheus_client", "pydantic", "redis", "structlog", "typer", "uvicorn"),
)
PRELOADED_PACKAGES: Final = ("soundmark.kit.crypto", "soundmark.kit.text", "soundmark.wire")
# They are run and not imported, and import what stands beside them.
PROGRAMS: Final = frozenset({"support.processes.fork_server", "support.processes.forked_soundmark"})
PYTEST: Final = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--timeout=60")
TIMEOUT_FACTOR: Final = 5
TIMEOUT_MIN_S: Final = 10
STOP_S: Final = 15


class Subject(NamedTuple):
    """A module to mutate, and the tests that must notice."""

    path: Path
    tests: Sequence[str]


def list_subjects(only: str) -> list[Subject]:
    table = tomllib.loads(TABLE.read_text("utf-8"))
    subjects = [
        Subject(path, entry["tests"])
        for entry in table["subject"]
        for pattern in entry["modules"]
        for path in sorted(ROOT.glob(pattern))
    ]
    return [subject for subject in subjects if only in str(subject.path)]


def list_unnamed() -> list[Path]:
    """Return the modules that no subject names, although they stand in a room that is tried and could be changed."""
    named = {subject.path for subject in list_subjects("")}
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) if path not in named]
    return [path for path in paths if path.name != "__init__.py" and list_mutants(path.read_text("utf-8"))]


def list_accepted() -> dict[str, set[str]]:
    """Return the keys of the mutants that may live, by the path of their module."""
    accepted: dict[str, set[str]] = {}
    for entry in tomllib.loads(TABLE.read_text("utf-8")).get("accepted", ()):
        assert entry["because"], "an accepted mutant has its reason"
        accepted.setdefault(entry["module"], set()).update(entry["mutants"])
    return accepted


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from a changed tree."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002 - the protocol's
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=str(self._path))

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(self._path)
        exec(self._code, module.__dict__)  # noqa: S102 - the changed module is what is tried


class _FirstFailure:
    """A pytest plugin that runs the tests that failed before first, and ends the process at the first failure.

    It names that test to `fd`, and ends the children of the process too. Stopping the apps would take two seconds.
    """

    def __init__(self, fd: int, failed_before: Sequence[str]) -> None:
        self._fd, self._rank = fd, {name: rank for rank, name in enumerate(failed_before)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: self._rank.get(item.nodeid, len(self._rank)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            os.write(self._fd, report.nodeid.encode())
            os.killpg(0, signal.SIGKILL)


class Trial:
    """The tests of one subject, which run once for each mutant, those that failed last before the others."""

    def __init__(self, subject: Subject) -> None:
        self._subject: Final = subject
        self._failed: list[str] = []
        self.is_timed_out = False  # Whether the last run did not end in time.

    def passes(self, change: Callable[[], None], timeout_s: float) -> bool:
        """Return whether all tests pass after `change`. Tests that do not end in time count as a failure."""
        reading, writing = os.pipe()
        pid = self._start(change, writing)
        os.close(writing)
        pidfd = os.pidfd_open(pid)
        try:
            is_over = bool(select.select([pidfd], [], [], timeout_s)[0])
            for signum in (signal.SIGINT, signal.SIGKILL):
                # The first lets pytest stop the databases that it started.
                if not select.select([pidfd], [], [], 0)[0]:
                    os.killpg(pid, signum)
                    select.select([pidfd], [], [], STOP_S)
            _, status = os.waitpid(pid, 0)
            self.is_timed_out = not is_over
            self._note(os.read(reading, select.PIPE_BUF).decode() if select.select([reading], [], [], 0)[0] else "")
            return is_over and os.waitstatus_to_exitcode(status) == 0
        finally:
            os.close(pidfd)
            os.close(reading)

    def _start(self, change: Callable[[], None], writing: int) -> int:
        """Fork a process that runs the tests after `change`; its exit status is 0 where all of them pass."""
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            os.setsid()
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            change()
            import pytest  # noqa: PLC0415 - loaded before the fork

            plugin = _FirstFailure(writing, self._failed)
            status = int(pytest.main([*PYTEST, *self._subject.tests], plugins=[plugin]))
        finally:
            os._exit(status)

    def _note(self, failed: str) -> None:
        if failed:
            self._failed = [failed, *(name for name in self._failed if name != failed)]


def module_name(path: Path) -> str:
    (source,) = [source for source in SOURCES if path.is_relative_to(source)]
    return ".".join(path.relative_to(source).with_suffix("").parts)


def load_instead(subject: Subject, tree: ast.Module) -> None:
    """Let the module be loaded from a changed tree."""
    name = module_name(subject.path)
    assert name not in sys.modules, "a loaded module would run unchanged"
    code = compile(tree, str(subject.path), "exec", dont_inherit=True)
    sys.meta_path.insert(0, _Finder(name, subject.path, code))


def list_codes(tree: ast.Module) -> dict[str, CodeType]:
    """Return the code of each function and method of a module, by its qualified name."""
    bodies, found = [compile(tree, "", "exec", dont_inherit=True)], {}
    while bodies:
        for code in bodies.pop().co_consts:
            if isinstance(code, CodeType) and code.co_flags & inspect.CO_OPTIMIZED:
                found[code.co_qualname] = code
            elif isinstance(code, CodeType):
                bodies.append(code)  # The body of a class.
    return found


def list_functions(module: str, namespace: Mapping[str, Any]) -> Iterator[FunctionType]:
    """Yield the functions and methods of a loaded module, without their decorators."""
    for value in namespace.values():
        inner = getattr(value, "fget", getattr(value, "__func__", value))
        inner = inspect.unwrap(inner) if callable(inner) else inner
        if isinstance(inner, FunctionType) and inner.__module__ == module:
            yield inner
        elif isinstance(inner, type) and inner.__module__ == module:
            yield from list_functions(module, vars(inner))


def replace_codes(subject: Subject, codes: Mapping[str, CodeType]) -> None:
    """Change the functions of the loaded module; end the process as if its tests passed if that is impossible."""
    name = module_name(subject.path)
    changed = [each for each in list_functions(name, vars(sys.modules[name])) if each.__code__.co_qualname in codes]
    try:
        for function in changed:
            function.__code__ = codes[function.__code__.co_qualname]
    except ValueError:
        changed = []
    if not changed:
        os._exit(0)


def list_living(subject: Subject, trial: Trial, mutants: Sequence[Mutant], timeout_s: float) -> list[Mutant]:
    """Return the mutants that live where only the code of the changed function is replaced, and all of other places.

    In a process that has loaded the product already, this takes half the time.
    """
    whole = list_codes(ast.parse(subject.path.read_text("utf-8")))
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            load_everything()
            for mutant in mutants:
                codes = {name: code for name, code in list_codes(mutant.tree).items() if code != whole.get(name)}
                lives = not codes or trial.passes(partial(replace_codes, subject, codes), timeout_s)
                if codes and trial.is_timed_out:
                    print(f"{subject.path.relative_to(ROOT)}:{mutant.line}: out of time: {mutant.key}", flush=True)
                os.write(writing, b"1" if lives else b"0")
        except BaseException:  # noqa: BLE001 - an error that went further would end the cluster of all mutants
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        killed = [answer == ord("0") for answer in answers.read()]
    os.waitpid(pid, 0)
    return [mutant for mutant, is_killed in zip_longest(mutants, killed) if not is_killed]


def load_everything() -> None:
    """Import the product, and what the tests share."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
    for module in pkgutil.walk_packages([str(ROOT / "tests" / "support")], "support."):
        if module.name not in PROGRAMS:
            importlib.import_module(module.name)
    gc.freeze()


def try_subject(subject: Subject, accepted: set[str], part: tuple[int, int]) -> tuple[int, list[Mutant]]:
    """Return the number of tried mutants, and those that live without a reason."""
    source = subject.path.read_text("utf-8")
    trial = Trial(subject)
    began_s = time.perf_counter()
    assert trial.passes(partial(load_instead, subject, ast.parse(source)), 600), f"without a change: {subject.path}"
    timeout_s = TIMEOUT_MIN_S + TIMEOUT_FACTOR * (time.perf_counter() - began_s)
    number, of = part
    mutants = list_mutants(source)[number::of]
    for key in accepted - {mutant.key for mutant in list_mutants(source)}:
        print(f"{subject.path.relative_to(ROOT)}: accepted, but gone: {key}", flush=True)
    doubtful = [mutant for mutant in mutants if mutant.key not in accepted]
    survivors = []
    for mutant in list_living(subject, trial, doubtful, timeout_s):
        if trial.passes(partial(load_instead, subject, mutant.tree), timeout_s):
            survivors.append(mutant)
            print(f"{subject.path.relative_to(ROOT)}:{mutant.line}: {mutant.key}", flush=True)
        elif trial.is_timed_out:
            print(f"{subject.path.relative_to(ROOT)}:{mutant.line}: out of time: {mutant.key}", flush=True)
    return len(mutants), survivors


def preload() -> None:
    """Import what no subject can change. The garbage collector of a forked process passes it by."""
    for name in PRELOADED:
        importlib.import_module(name)
    for name in PRELOADED_PACKAGES:
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(module.name)
    gc.freeze()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests on changed modules, one change at a time.")
    parser.add_argument("--only", default="", help="Only modules whose path contains this text.")
    parser.add_argument("--part", default="0/1", help="Every Nth mutant from the first number on, as in 1/4.")
    arguments = parser.parse_args()
    number, of = (int(each) for each in arguments.part.split("/"))
    os.chdir(ROOT)
    preload()
    accepted = list_accepted()
    tried = survived = 0
    with shared_cluster():
        for subject in list_subjects(arguments.only):
            began_s = time.perf_counter()
            path = str(subject.path.relative_to(ROOT))
            count, survivors = try_subject(subject, accepted.get(path, set()), (number, of))
            tried, survived = tried + count, survived + len(survivors)
            print(f"{path}: {count} mutants, {len(survivors)} live, {time.perf_counter() - began_s:.0f} s", flush=True)
    unnamed = [] if arguments.only else list_unnamed()
    for one in unnamed:
        print(f"{one.relative_to(ROOT)}: no subject names it")
    print(f"{tried} mutants, {tried - survived} killed or explained, {survived} live")
    return int(survived > 0 or bool(unnamed))


if __name__ == "__main__":
    sys.exit(main())
