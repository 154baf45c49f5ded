"""The evidence of how far the receivers' SDK is from its launch."""

import json
import re
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json

EvidenceFinding = Literal[
    "not_configured", "missing", "not_a_file", "unreadable", "changing", "too_large", "malformed", "asymmetric"
]

EVIDENCE_BYTES_MAX: Final = 64 * 1024
# The worker reads the evidence every five minutes, so one run may be late or fail.
READINESS_AGE_MAX: Final = timedelta(minutes=10)

_IDENTIFIER: Final = r"(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD: Final = r"[0-9a-zA-Z-]+"
# Semantic Versioning 2.0.0, its grammar and the regular expression that its authors suggest.
VERSION_PATTERN: Final = (
    r"^(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)"
    rf"(?:-{_IDENTIFIER}(?:\.{_IDENTIFIER})*)?(?:\+{_BUILD}(?:\.{_BUILD})*)?$"
)
REVISION_PATTERN: Final = "^[0-9a-f]{7,64}$"
_VERSION: Final = re.compile(VERSION_PATTERN.removesuffix("$"))
_REVISION: Final = re.compile(REVISION_PATTERN.removesuffix("$"))


class EvidenceRefused(Exception):
    """The evidence cannot be used; `finding` says why."""

    def __init__(self, finding: EvidenceFinding) -> None:
        super().__init__(finding)
        self.finding: Final[EvidenceFinding] = finding


@dataclass(frozen=True, slots=True)
class SdkRelease:
    """A release of the SDK, and the commit that it was built from."""

    version: str
    revision: str


@dataclass(frozen=True, slots=True)
class ReleaseGates:
    """The conditions for a stable release."""

    available: bool
    store_uploaded: bool
    android_acoustic: bool
    ios_acoustic: bool
    stable_channel_signed: bool

    def list_closed(self) -> list[str]:
        """List the names of the gates that are false."""
        return [name for name, is_open in asdict(self).items() if not is_open]


@dataclass(frozen=True, slots=True)
class ReleaseEvidence:
    """The content of the evidence file. `stable` is None until there is a stable release."""

    preview: SdkRelease
    gates: ReleaseGates
    stable: SdkRelease | None


@dataclass(frozen=True, slots=True)
class StoredReadiness:
    """The worker's last result: evidence as JSON, or why it has none."""

    computed_at: datetime
    evidence: str | None
    finding: EvidenceFinding | None

    def is_stale(self, now: datetime) -> bool:
        """Return whether it was computed too long ago. A time far ahead says as little, so it counts as stale too."""
        return abs(now - self.computed_at) > READINESS_AGE_MAX


def parse_evidence(content: bytes) -> ReleaseEvidence:
    """Return the evidence that a file holds.

    Raises: EvidenceRefused for content that is too long, malformed or asymmetric.
    Source: contract, section 7, release readiness.
    """
    if len(content) > EVIDENCE_BYTES_MAX:
        raise EvidenceRefused("too_large")
    try:
        document = parse_json(content)
    except MalformedJson:
        raise EvidenceRefused("malformed") from None
    members = _read_object(document, {"preview", "gates", "stable"})
    evidence = ReleaseEvidence(
        preview=_read_release(members["preview"]),
        gates=_read_gates(members["gates"]),
        stable=None if members["stable"] is None else _read_release(members["stable"]),
    )
    if evidence.stable is not None and evidence.gates.list_closed():
        raise EvidenceRefused("asymmetric")
    return evidence


def write_evidence(evidence: ReleaseEvidence) -> str:
    """Return evidence as the JSON that `parse_evidence` reads."""
    return json.dumps(asdict(evidence), separators=(",", ":"))


def _read_object(value: Any, names: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != names:
        raise EvidenceRefused("malformed")
    return value


def _read_gates(value: Any) -> ReleaseGates:
    gates = _read_object(value, set(ReleaseGates.__dataclass_fields__))
    if not all(isinstance(gate, bool) for gate in gates.values()):
        raise EvidenceRefused("malformed")
    return ReleaseGates(**gates)


def _read_release(value: Any) -> SdkRelease:
    if not isinstance(value, dict) or value.keys() - {"version", "revision"}:
        raise EvidenceRefused("malformed")
    version, revision = value.get("version"), value.get("revision")
    if (version is None) != (revision is None):
        raise EvidenceRefused("asymmetric")
    if not isinstance(version, str) or not isinstance(revision, str):
        raise EvidenceRefused("malformed")
    if _VERSION.fullmatch(version) is None or _REVISION.fullmatch(revision) is None:
        raise EvidenceRefused("malformed")
    return SdkRelease(version, revision)
