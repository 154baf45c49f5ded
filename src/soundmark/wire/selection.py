"""A selection of Codes in a request."""

from typing import Annotated, Final

from pydantic import AfterValidator, FailFast, Field, StringConstraints

from soundmark.kit.text.ids import parse_id


def _require_unique(xr_ids: list[str]) -> list[str]:
    if len(set(xr_ids)) < len(xr_ids):
        raise ValueError("each id must occur only once")
    return xr_ids


SELECTION_MAX: Final = 100  # API v1, "Limits": for revoke-batch and for the audio bundle.


def _parse_ids(xr_ids: list[str]) -> list[str]:
    return [parse_id(xr_id) for xr_id in xr_ids]


Selection = Annotated[
    list[Annotated[str, StringConstraints(max_length=160)]],
    Field(
        min_length=1,
        max_length=SELECTION_MAX,
        description="The ids of the Codes, without duplicates.",
        json_schema_extra={"uniqueItems": True},
    ),
    FailFast(),
    AfterValidator(_require_unique),
    AfterValidator(_parse_ids),
]
