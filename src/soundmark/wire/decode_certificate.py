"""The decode certificate: a signed statement that somebody of an organisation measured how well its Code is heard."""

import itertools
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, ConfigDict, FailFast, Field, StringConstraints, ValidationInfo, field_validator
from pydantic.config import JsonDict

from soundmark.kit.http.requests.strict_json import INTEGER_MAX
from soundmark.wire.shape import KeyId, Signature, Timestamp, Wire, XrId

CERTIFICATE_VERSION: Final = 1
REPETITIONS_MAX: Final = 10_000
CODECS_MAX: Final = 50
_LEVEL_MAX_DB: Final = 200
_FOLDERS: Final = (".", "..")
_EXAMPLE: Final[JsonDict] = {
    "file_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "file_name": "morning-show.wav",
    "duration_ms": 3_600_000,
    "sample_rate": 48_000,
    "tool": {"name": "soundmark", "version": "0.1.0"},
    "repetitions": [
        {"at_ms": 12_000, "protocol": 4, "level_db": -12.0, "margin_db": 9.4, "cutoff_hz": 20_000},
        {"at_ms": 312_000, "protocol": 4, "level_db": -12.0, "margin_db": 8.1, "cutoff_hz": 18_900},
    ],
    "codecs": [{"name": "mp3", "setting": "192 kbit/s, -cutoff 20000", "heard": 2, "of": 2}],
}

CertificateId = Annotated[str, StringConstraints(pattern=r"^dcc_[A-Za-z0-9_-]{22}$")]
OrganizationId = Annotated[str, StringConstraints(pattern=r"^org_[A-Za-z0-9_-]{1,128}$")]
Decibels = Annotated[float, Field(ge=-_LEVEL_MAX_DB, le=_LEVEL_MAX_DB)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=80)]
HeardCount = Annotated[int, Field(ge=0, le=REPETITIONS_MAX)]


def _refuse_folder(name: str) -> str:
    if name in _FOLDERS:
        raise ValueError("must be the name of a file")
    return name


class MeasuringTool(Wire):
    """The program that measured."""

    name: Label
    version: Annotated[str, StringConstraints(min_length=1, max_length=40)]


class MeasuredRepetition(Wire):
    """One repetition of the Code in the file. `margin_db` is how much noise could be added before it is lost."""

    at_ms: Annotated[int, Field(ge=0, lt=INTEGER_MAX, description="Where it begins. Less than `duration_ms`.")]
    protocol: Literal[3, 4, 5]
    level_db: Annotated[Decibels | None, Field(description="The level against the programme; null if unknown.")]
    margin_db: Decibels
    cutoff_hz: Annotated[
        int | None, Field(ge=1, le=384_000, description="Where the sound ends; null if no cut-off was found.")
    ]


class MeasuredCodec(Wire):
    """How many of the repetitions were heard after the file was encoded with one setting of a codec."""

    name: Label
    setting: Label
    heard: HeardCount
    of: Annotated[int, Field(ge=1, le=REPETITIONS_MAX)]


class Measurement(Wire):
    """What was measured in a file that contains the Code."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    file_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    file_name: Annotated[
        str,
        StringConstraints(min_length=1, max_length=255, pattern=r"^[^/\\\x00-\x1f\x7f-\x9f]*$"),
        Field(description="The file's name, without its folder.", json_schema_extra={"not": {"enum": [*_FOLDERS]}}),
        AfterValidator(_refuse_folder),
    ]
    duration_ms: Annotated[int, Field(ge=1, le=INTEGER_MAX)]
    sample_rate: Annotated[int, Field(ge=8_000, le=768_000)]
    tool: MeasuringTool
    repetitions: Annotated[
        list[MeasuredRepetition],
        Field(min_length=1, max_length=REPETITIONS_MAX, description="Each begins after the one before."),
        FailFast(),
    ]
    codecs: Annotated[list[MeasuredCodec], Field(max_length=CODECS_MAX), FailFast()]

    @field_validator("repetitions")
    @classmethod
    def _repetitions_follow_each_other(
        cls, repetitions: list[MeasuredRepetition], info: ValidationInfo
    ) -> list[MeasuredRepetition]:
        times = [repetition.at_ms for repetition in repetitions]
        if any(later <= earlier for earlier, later in itertools.pairwise(times)):
            raise ValueError("each at_ms must be greater than the one before")
        if times[-1] >= info.data.get("duration_ms", INTEGER_MAX):
            raise ValueError("each at_ms must be less than duration_ms")
        return repetitions

    @field_validator("codecs")
    @classmethod
    def _heard_are_some_of_all(cls, codecs: list[MeasuredCodec]) -> list[MeasuredCodec]:
        if any(codec.heard > codec.of for codec in codecs):
            raise ValueError("heard must not be greater than of")
        return codecs


EXAMPLE_MEASUREMENT: Final = Measurement.model_validate(_EXAMPLE)


class DecodeCertificate(Wire):
    """A decode certificate.

    It says that somebody of the organisation, whom its audit log names, measured this; Core signs for which
    organisation, which Code, and when. `signature` is Ed25519 over the canonical JSON (RFC 8785) of the certificate
    without this member.
    """

    version: Literal[1]
    certificate_id: CertificateId
    xr_id: XrId
    organization_id: OrganizationId
    issued_at: Timestamp
    measured: Measurement
    key_id: KeyId
    signature: Signature
