"""Every problem that Core can return, by code."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from soundmark.core import problems as core
from soundmark.kit.http.responses import problems
from soundmark.kit.http.responses.problems import Problem
from soundmark.kit.text import paging
from soundmark.wire.private import problems as private


def _problems() -> Iterator[type[Problem]]:
    for module in (problems, paging, core, private):
        for member in vars(module).values():
            if isinstance(member, type) and issubclass(member, Problem) and member is not Problem:
                yield member


CATALOGUE: Final[Mapping[str, type[Problem]]] = MappingProxyType(
    {problem.code: problem for problem in sorted(_problems(), key=lambda problem: problem.code)}
)
