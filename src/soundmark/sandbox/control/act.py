"""One act of `/control`: where it is, and what it does."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from soundmark.sandbox.control.fields import Fields

# Takes the fields and the parts of the path; returns what is answered as JSON.
Do: TypeAlias = Callable[[Fields, Mapping[str, str]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Act:
    """An act at `/control` + `path`."""

    method: str
    path: str
    do: Do
