"""Verify a deletion certificate: the service's signed statement that nothing is left of a project or organisation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from soundmark_sdk import strict_json, timestamps
from soundmark_sdk.closed_shapes import (
    Shape,
    encoding,
    find_misfit,
    is_count,
    is_timestamp,
    is_version_1,
    matching,
    one_of,
)
from soundmark_sdk.failures import KeyUnknown, Unverifiable
from soundmark_sdk.keys import KeySet
from soundmark_sdk.members import CERTIFICATE_ID, ORGANIZATION_ID, PROJECT_ID, SHORT_TEXT
from soundmark_sdk.strict_json import JsonValue
from soundmark_sdk.verification import canonicalize_signed

CertificateFailure: TypeAlias = Literal[
    "malformed",
    "wrong_shape",
    "key_unknown",
    "signature_invalid",
    "wrong_subject",
    "wrong_times",
    "incomplete",
]

# A certificate has under 2 KiB.
CERTIFICATE_BYTES_MAX: Final = 64 * 1024

_EXPLANATIONS: Final[Mapping[CertificateFailure, str]] = {
    "malformed": "The text is not I-JSON of at most 64 KiB.",
    "wrong_shape": "A member is missing, unknown or of the wrong type.",
    "key_unknown": "The signing key is not among the keys that it is verified with.",
    "signature_invalid": "The signature is wrong: something in the certificate was changed.",
    "wrong_subject": "The organisation of the subject is another one.",
    "wrong_times": "The deletion ends before it begins.",
    "incomplete": "Something was left.",
}
assert tuple(_EXPLANATIONS) == get_args(CertificateFailure), "each failure has its sentence"

_SIGNATURE_BYTES: Final = 64
_CORE_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "organization": (
        *("projects", "campaigns", "codes", "api_keys", "members", "invitations", "audit_entries", "tickets"),
        *("checkouts", "subscriptions", "webhook_endpoints"),
    ),
    "project": ("campaigns", "codes", "api_keys", "webhook_endpoints"),
}
_AUDIENCE_COUNTS: Final = ("integrations", "events", "integrity_days", "legacy_days", "spent_proofs")


class CertificateRejected(Exception):
    """The first fault in a certificate, and its location, such as `remaining.core.codes`.

    `explanation` is an English sentence of this package. Nothing here holds text from the certificate.
    """

    def __init__(self, failure: CertificateFailure, location: str) -> None:
        explanation = _EXPLANATIONS[failure]
        super().__init__(f"{failure} at {location}: {explanation}")
        self.failure: Final[CertificateFailure] = failure
        self.location: Final = location
        self.explanation: Final = explanation


@dataclass(frozen=True, slots=True)
class VerifiedCertificate:
    """The facts of a certificate: what was deleted, in each component, and that nothing of it is left."""

    certificate_id: str
    subject_type: Literal["organization", "project"]
    subject_id: str
    organization_id: str
    requested_at: datetime
    completed_at: datetime
    deleted_in_core: Mapping[str, int]
    deleted_in_audience: Mapping[str, int]
    key_id: str


def verify_certificate(certificate: bytes | Mapping[str, Any], keys: KeySet) -> VerifiedCertificate:
    """Verify a `deletion-certificate-v1` document, which proves a complete deletion; return its facts.

    `certificate` is the text or its JSON object. `keys` are the service's, from `read_key_history`. The checks have a
    fixed order, and the first that fails is named: JSON, shape, key, signature, subject, times, and that every count of
    `remaining` is 0.

    Raises: CertificateRejected.
    Source: wire contract, section 8, "Certificate".
    """
    members = _read_members(certificate)
    try:
        keys.verify(members["key_id"], canonicalize_signed(members), members["signature"])
    except KeyUnknown:
        raise CertificateRejected("key_unknown", "key_id") from None
    except Unverifiable:
        raise CertificateRejected("signature_invalid", "signature") from None
    subject = members["subject"]
    if subject["type"] == "organization" and subject["organization_id"] != subject["id"]:
        raise CertificateRejected("wrong_subject", "subject.organization_id")
    if members["completed_at"] < members["requested_at"]:
        raise CertificateRejected("wrong_times", "completed_at")
    for component, counts in members["remaining"].items():
        for name, count in counts.items():
            if count:
                raise CertificateRejected("incomplete", f"remaining.{component}.{name}")
    return VerifiedCertificate(
        certificate_id=members["certificate_id"],
        subject_type=subject["type"],
        subject_id=subject["id"],
        organization_id=subject["organization_id"],
        requested_at=timestamps.parse(members["requested_at"]),
        completed_at=timestamps.parse(members["completed_at"]),
        deleted_in_core=members["deleted"]["core"],
        deleted_in_audience=members["deleted"]["audience"],
        key_id=members["key_id"],
    )


def _read_members(certificate: bytes | Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a certificate, which has its shape."""
    document: JsonValue
    try:
        if isinstance(certificate, bytes):
            if len(certificate) > CERTIFICATE_BYTES_MAX:
                raise CertificateRejected("malformed", "certificate")
            document = strict_json.parse(certificate)
        else:
            document = dict(certificate)
            strict_json.check_value(document)
    except Unverifiable:
        raise CertificateRejected("malformed", "certificate") from None
    if not isinstance(document, dict):
        raise CertificateRejected("wrong_shape", "certificate")
    subject = document.get("subject")
    subject_type = subject.get("type") if isinstance(subject, dict) else None
    is_project = subject_type == "project"
    misfit = find_misfit(document, _PROJECT if is_project else _ORGANIZATION, "")
    if misfit is not None:
        raise CertificateRejected("wrong_shape", misfit or "certificate")
    return document


def _make_shape(subject_type: Literal["organization", "project"]) -> Shape:
    counts: Shape = {
        "core": dict.fromkeys(_CORE_COUNTS[subject_type], is_count),
        "audience": dict.fromkeys(_AUDIENCE_COUNTS, is_count),
    }
    return {
        "version": is_version_1,
        "certificate_id": matching(CERTIFICATE_ID),
        "subject": {
            "type": one_of(subject_type),
            "id": matching(PROJECT_ID if subject_type == "project" else ORGANIZATION_ID),
            "organization_id": matching(ORGANIZATION_ID),
        },
        "requested_at": is_timestamp,
        "completed_at": is_timestamp,
        "deleted": counts,
        "remaining": counts,
        "key_id": matching(SHORT_TEXT),
        "signature": encoding(_SIGNATURE_BYTES),
    }


_ORGANIZATION: Final = _make_shape("organization")
_PROJECT: Final = _make_shape("project")
