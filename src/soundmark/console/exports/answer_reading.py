"""Reading an answer of the API strictly."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from soundmark.console.exports.answer_shapes import Shape
from soundmark.console.exports.refusal import ExportRefused, Reason

S = TypeVar("S", bound=Shape)

_REASONS: Final[Mapping[str, Reason]] = {"extra_forbidden": "unknown_member", "missing": "missing_member"}


def read_answer(shape: type[S], document: Mapping[str, Any], name: str) -> S:
    """Return the answer in its shape; `name` says in a refusal which answer it is.

    Raises: ExportRefused for the first member that is unknown, missing or not as the shape has it.
    """
    try:
        return shape.model_validate(dict(document))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ExportRefused(_REASONS.get(first["type"], "invalid_member"), _name_place(name, first["loc"])) from None


def _name_place(name: str, path: tuple[str | int, ...]) -> str:
    """Return a place such as `report.by_day[3].events`."""
    return name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
