"""What every published shape is made of."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp

AudienceMode = Literal["demo", "contract", "self_service"]
EntitledMode = Literal["contract", "self_service"]

NO_CONTROL_CHARS: Final = r"^[^\x00-\x1f\x7f]*$"


class Wire(BaseModel):
    """A closed, immutable, strictly typed shape: an unknown member is refused, nothing is converted.

    A list that is asked for says its greatest length and is refused at its first wrong item (`FailFast`), so that
    judging a body is bounded; `kit.bodies` sees to the objects.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
# Published as what is left once the spaces around it are cut off, which is when its length is judged.
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=_NAME_CHARS_MAX, pattern=NO_CONTROL_CHARS),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^\s*[^{_INNER}\s]([^{_INNER}]{{0,{_NAME_CHARS_MAX - 2}}}[^{_INNER}\s])?\s*$",
            "description": f"1 to {_NAME_CHARS_MAX} characters, no control characters; spaces around it are cut off.",
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
