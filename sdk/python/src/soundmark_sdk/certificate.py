"""Verify a deletion certificate: the service's signed statement that nothing is left of a project or organisation."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from soundmark_sdk import timestamps
from soundmark_sdk.closed_shapes import (
    Absentable,
    Shape,
    encoding,
    is_count,
    is_timestamp,
    is_version_1,
    matching,
    one_of,
)
from soundmark_sdk.keys import KeySet
from soundmark_sdk.members import CERTIFICATE_ID, ORGANIZATION_ID, PROJECT_ID, SHORT_TEXT
from soundmark_sdk.signed_documents import CertificateRejected, check_shape, check_signature, read_object

# A certificate has under 2 KiB.
CERTIFICATE_BYTES_MAX: Final = 64 * 1024

_SIGNATURE_BYTES: Final = 64
_CORE_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "organization": (
        *("projects", "campaigns", "codes", "api_keys", "members", "invitations", "audit_entries", "tickets"),
        *("checkouts", "subscriptions", "webhook_endpoints"),
    ),
    "project": ("campaigns", "codes", "api_keys", "webhook_endpoints"),
}
_AUDIENCE_COUNTS: Final = ("integrations", "events", "integrity_days", "legacy_days", "spent_proofs")


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
    check_signature(members, keys)
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
    document = read_object(certificate, CERTIFICATE_BYTES_MAX)
    subject = document.get("subject")
    subject_type = subject.get("type") if isinstance(subject, dict) else None
    is_project = subject_type == "project"
    check_shape(document, _PROJECT if is_project else _ORGANIZATION)
    return document


def _make_shape(subject_type: Literal["organization", "project"]) -> Shape:
    counts: Shape = {
        "core": {
            **dict.fromkeys(_CORE_COUNTS[subject_type], is_count),
            # Certificates of before these counts existed have none.
            "decode_certificates": Absentable(is_count),
            "offline_packs": Absentable(is_count),
        },
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
