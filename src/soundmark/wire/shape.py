"""The building blocks of every published shape."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, StringConstraints, WithJsonSchema

from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp

AudienceMode = Literal["demo", "contract", "self_service"]
EntitledMode = Literal["contract", "self_service"]

NO_CONTROL_CHARS: Final = r"^[^\x00-\x1f\x7f]*$"


class Wire(BaseModel):
    """A closed, immutable, strictly typed shape: unknown members are rejected, nothing is converted.

    A list in a request declares its maximum length and is rejected at its first invalid item (`FailFast`), so that the
    cost of validating a body is bounded; `kit.http.requests.bodies` bounds the number of objects.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def from_record(cls, record: object, **others: Any) -> Self:
        """Return the view of a record: each member is its attribute of that name, unless it is among `others`."""
        names = cls.model_fields.keys() - others.keys()
        return cls(**{name: getattr(record, name) for name in names}, **others)


def _timestamp(value: Any) -> Any:
    return parse_timestamp(value) if isinstance(value, str) else value


Timestamp = Annotated[
    datetime,
    BeforeValidator(_timestamp),
    PlainSerializer(format_timestamp, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-20T10:00:00.000Z"]}),
]
_NAME_CHARS_MAX: Final = 120
_INNER: Final = r"\x00-\x1f\x7f"
# The published pattern allows surrounding spaces, which are removed before the length is checked.
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=_NAME_CHARS_MAX, pattern=NO_CONTROL_CHARS),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*[^{_INNER}\s]([^{_INNER}]{{0,{_NAME_CHARS_MAX - 2}}}[^{_INNER}\s])?\s*$",
            "description": f"1 to {_NAME_CHARS_MAX} characters, no control characters. Surrounding spaces are removed.",
        }
    ),
]
Label = Annotated[str, StringConstraints(min_length=1, max_length=160)]
XrId = Annotated[str, StringConstraints(pattern=r"^xr_[A-Za-z0-9_-]{16,}$")]
IntegrationId = Annotated[str, StringConstraints(pattern=r"^int_[A-Za-z0-9_-]{8,}$")]
CampaignId = Annotated[str, StringConstraints(pattern=r"^cmp_[A-Za-z0-9_-]{16,}$")]
ProofId = Annotated[str, StringConstraints(pattern=r"^prf_[A-Za-z0-9_-]{16,}$")]
KeyId = Annotated[str, StringConstraints(min_length=1, max_length=160)]
Signature = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{86}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
BroadcastToken = Annotated[str, StringConstraints(pattern=r"^brd_[A-Za-z0-9_-]{16}$")]
BroadcastFrame = Annotated[str, StringConstraints(pattern=r"^XRC1:brd_[A-Za-z0-9_-]{16}$")]
