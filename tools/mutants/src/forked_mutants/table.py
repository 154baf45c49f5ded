"""The table of a run: which modules are mutated, which tests must notice, and which mutants may live."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from forked_mutants.trees import list_mutants


@dataclass(frozen=True, slots=True)
class Subject:
    """A module to mutate, and the tests that must notice."""

    path: Path
    module: str
    tests: Sequence[str]


class Table:
    """A TOML file; every path in it counts from the folder in which the run was started."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        run: Final = content.get("run", {})
        self._content: Final = content
        self._sources: Final[Sequence[str]] = run.get("sources", ["src"])
        self.import_path: Final[Sequence[str]] = run.get("import_path", [])
        self.pytest: Final[Sequence[str]] = run.get("pytest", [])
        self.around: Final[str | None] = run.get("around")
        self.preloaded: Final[Sequence[str]] = run.get("preloaded", [])
        self.preloaded_packages: Final[Sequence[str]] = run.get("preloaded_packages", [])

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls(tomllib.loads(path.read_text("utf-8")))

    def list_subjects(self, only: str = "") -> list[Subject]:
        subjects = [
            Subject(path.resolve(), self._name(path), entry["tests"])
            for entry in self._content["subject"]
            for pattern in entry["modules"]
            for path in sorted(Path().glob(pattern))
        ]
        return [subject for subject in subjects if only in str(subject.path)]

    def list_accepted(self, subject: Subject) -> set[str]:
        """Return the keys of the mutants of a module that may live."""
        entries = self._content.get("accepted", ())
        return {key for each in entries if Path(each["module"]).resolve() == subject.path for key in each["mutants"]}

    def list_shared(self) -> Iterator[str]:
        """Yield the names of the modules that every test may import, and that may import those under test."""
        shared = self._content.get("run", {}).get("shared", {})
        for path in sorted(Path(shared["folder"]).rglob("*.py")) if shared else ():
            if path.name not in {"__init__.py", *shared["except"]}:
                yield ".".join(path.relative_to(Path(shared["folder"]).parent).with_suffix("").parts)

    def list_faults(self) -> Iterator[str]:
        """Yield what is wrong with the table: a module that moved would no longer be tried."""
        for entry in self._content["subject"]:
            yield from (f"{each}: no such module" for each in entry["modules"] if not list(Path().glob(each)))
            files = [test.partition("::")[0] for test in entry["tests"] if not test.startswith("-")]
            yield from (f"{each}: no such test" for each in files if not Path(each).exists())
        for entry in self._content.get("accepted", ()):
            if not Path(entry["module"]).exists():
                yield f"{entry['module']}: accepted, but gone"
            if not entry["because"]:
                yield f"{entry['module']}: accepted without a reason"
        yield from (f"{path}: no subject names it" for path in self._list_unnamed())

    def _list_unnamed(self) -> list[Path]:
        """Return the modules that no subject names, although they stand in a room and could be changed."""
        rooms = self._content.get("run", {}).get("rooms", ())
        named = {subject.path for subject in self.list_subjects()}
        paths = [path for room in rooms for path in sorted(Path(room).rglob("*.py")) if path.resolve() not in named]
        return [path for path in paths if path.name != "__init__.py" and list_mutants(path.read_text("utf-8"))]

    def _name(self, path: Path) -> str:
        (source,) = [source for source in self._sources if path.is_relative_to(source)]
        return ".".join(path.relative_to(source).with_suffix("").parts)
