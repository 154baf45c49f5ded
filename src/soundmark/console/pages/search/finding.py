"""What a search finds, and where."""

from collections.abc import Awaitable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from soundmark_sdk.client import ApiProblem
from soundmark_sdk.client.records import Organization

from soundmark.console.parts import read_part

# How Core says that there is nothing like that for this person: with that spelling, with their role, or at all.
_NOTHING: Final = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY})


@dataclass(frozen=True, slots=True)
class Finding:
    """A page that fits: its `kind` as messages name it, `is_id` where the name is an id, and what else is said."""

    kind: str
    name: str
    path: str
    is_id: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was found; the search `is_complete` unless more may be where it did not look, or could not."""

    found: list[Finding]
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """The organisation and project of the page that the search was opened on; no project without its organisation."""

    organization: Organization | None
    project_id: str | None


async def find_or_nothing(finding: Awaitable[list[Finding]]) -> list[Finding] | None:
    """Return what is found: nothing where Core has nothing for this person, and None if its call fails or is late.

    Raises: as `read_part`.
    """

    async def find() -> list[Finding]:
        try:
            return await finding
        except ApiProblem as problem:
            if problem.status not in _NOTHING:
                raise
            return []

    return await read_part(find())
