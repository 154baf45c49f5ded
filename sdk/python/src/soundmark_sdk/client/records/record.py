"""The base of all records, and one page of a list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

Status: TypeAlias = Literal["active", "expired", "revoked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The base of every record. `document` is the whole JSON object, with the members of later releases."""

    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


R = TypeVar("R", bound=Record)


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """One page of a list, newest first; `next_cursor` is None on the last."""

    data: tuple[R, ...]
    next_cursor: str | None
    document: Mapping[str, Any] = field(repr=False, compare=False)
