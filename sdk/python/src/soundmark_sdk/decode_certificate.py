"""Verify a decode certificate: the service's signature under what somebody measured of a Code in a programme."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from soundmark_sdk import timestamps
from soundmark_sdk.closed_shapes import (
    Check,
    Shape,
    encoding,
    is_integer_between,
    is_number_between,
    is_timestamp,
    is_version_1,
    list_of,
    matching,
    optional,
)
from soundmark_sdk.keys import KeySet
from soundmark_sdk.members import DECODE_CERTIFICATE_ID, ORGANIZATION_ID, SHORT_TEXT, XR_ID
from soundmark_sdk.signed_documents import check_shape, check_signature, read_object
from soundmark_sdk.strict_json import INTEGER_MAX

# A measurement has at most 1 MiB as it is sent.
DECODE_CERTIFICATE_BYTES_MAX: Final = 4 * 1024 * 1024

_SIGNATURE_BYTES: Final = 64
_REPETITIONS_MAX: Final = 10_000
_LABEL: Final = matching(re.compile(r".{1,80}", re.DOTALL))
_DECIBELS: Final = is_number_between(-200, 200)


def _is_protocol(value: Any) -> bool:
    return type(value) is int and value in {3, 4, 5}


_REPETITION: Final[Shape] = {
    "at_ms": is_integer_between(0, INTEGER_MAX),
    "protocol": _is_protocol,
    "level_db": optional(_DECIBELS),
    "margin_db": _DECIBELS,
    "cutoff_hz": optional(is_integer_between(1, 384_000)),
}
_HEARD: Final[Check] = is_integer_between(0, _REPETITIONS_MAX)
_CODEC: Final[Shape] = {
    "name": _LABEL,
    "setting": _LABEL,
    "heard": _HEARD,
    "of": is_integer_between(1, _REPETITIONS_MAX),
}
_CERTIFICATE: Final[Shape] = {
    "version": is_version_1,
    "certificate_id": matching(DECODE_CERTIFICATE_ID),
    "xr_id": matching(XR_ID),
    "organization_id": matching(ORGANIZATION_ID),
    "issued_at": is_timestamp,
    "measured": {
        "file_sha256": matching(re.compile(r"[0-9a-f]{64}")),
        "file_name": matching(re.compile(r"(?!\.{1,2}\Z)[^/\\\x00-\x1f\x7f-\x9f]{1,255}")),
        "duration_ms": is_integer_between(1, INTEGER_MAX),
        "sample_rate": is_integer_between(8_000, 768_000),
        "tool": {"name": _LABEL, "version": matching(re.compile(r".{1,40}", re.DOTALL))},
        "repetitions": list_of(_REPETITION, 1, _REPETITIONS_MAX),
        "codecs": list_of(_CODEC, 0, 50),
    },
    "key_id": matching(SHORT_TEXT),
    "signature": encoding(_SIGNATURE_BYTES),
}


@dataclass(frozen=True, slots=True)
class MeasuredRepetition:
    """One repetition. `level_db` is the level against the programme, `margin_db` how much noise it still bears."""

    at_ms: int
    protocol: Literal[3, 4, 5]
    level_db: float | None
    margin_db: float
    cutoff_hz: int | None


@dataclass(frozen=True, slots=True)
class MeasuredCodec:
    """How many of all repetitions were heard after one setting of a codec."""

    name: str
    setting: str
    heard: int
    of: int


@dataclass(frozen=True, slots=True)
class VerifiedDecodeCertificate:
    """The facts of a certificate: which file was measured, for which Code of which organisation, and with what result.

    The service signs for organisation, Code and time. What was measured is the statement of somebody there.
    """

    certificate_id: str
    xr_id: str
    organization_id: str
    issued_at: datetime
    file_sha256: str
    file_name: str
    duration_ms: int
    sample_rate: int
    tool_name: str
    tool_version: str
    repetitions: tuple[MeasuredRepetition, ...]
    codecs: tuple[MeasuredCodec, ...]
    key_id: str


def verify_decode_certificate(certificate: bytes | Mapping[str, Any], keys: KeySet) -> VerifiedDecodeCertificate:
    """Verify a `decode-certificate-v1` document; return its facts.

    `certificate` is the text or its JSON object. `keys` are the service's, from `read_key_history`. The checks have a
    fixed order, and the first that fails is named: JSON, shape, key, signature. Compare `file_sha256` with the file.

    Raises: CertificateRejected.
    Source: wire contract, section 12, "Decode certificate".
    """
    members = read_object(certificate, DECODE_CERTIFICATE_BYTES_MAX)
    check_shape(members, _CERTIFICATE)
    check_signature(members, keys)
    measured = members["measured"]
    return VerifiedDecodeCertificate(
        certificate_id=members["certificate_id"],
        xr_id=members["xr_id"],
        organization_id=members["organization_id"],
        issued_at=timestamps.parse(members["issued_at"]),
        file_sha256=measured["file_sha256"],
        file_name=measured["file_name"],
        duration_ms=measured["duration_ms"],
        sample_rate=measured["sample_rate"],
        tool_name=measured["tool"]["name"],
        tool_version=measured["tool"]["version"],
        repetitions=tuple(MeasuredRepetition(**each) for each in measured["repetitions"]),
        codecs=tuple(MeasuredCodec(**each) for each in measured["codecs"]),
        key_id=members["key_id"],
    )
