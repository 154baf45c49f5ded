"""A selection of Codes, as a request names it."""

from typing import Annotated, Final

from pydantic import AfterValidator, FailFast, Field, StringConstraints

from soundmark.kit.text.ids import parse_id


def _require_unique(xr_ids: list[str]) -> list[str]:
    if len(set(xr_ids)) < len(xr_ids):
        raise ValueError("each id must stand there once")
    return xr_ids


SELECTION_MAX: Final = 100  # API v1, "Limits": of revoke-batch and of the audio bundle.


def _parse_ids(xr_ids: list[str]) -> list[str]:
    return [parse_id(xr_id) for xr_id in xr_ids]


Selection = Annotated[
    list[Annotated[str, StringConstraints(max_length=160)]],
    Field(
        min_length=1,
        max_length=SELECTION_MAX,
        description="The Codes' ids, each once.",
        json_schema_extra={"uniqueItems": True},
    ),
    FailFast(),
    AfterValidator(_require_unique),
    AfterValidator(_parse_ids),
]
