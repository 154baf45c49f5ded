"""The shapes of the two archive formats and of their records.

Source: wire contract, sections 3 and 8.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from soundmark_sdk.closed_shapes import (
    Check,
    Shape,
    encoding,
    is_boolean,
    is_count,
    is_object,
    is_text,
    is_timestamp,
    is_version_1,
    matching,
    one_of,
    optional,
)
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.members import (
    API_KEY_ID,
    BROADCAST_FRAME,
    BROADCAST_TOKEN,
    CAMPAIGN_ID,
    INTEGRATION_ID,
    ORGANIZATION_ID,
    PROJECT_ID,
    SHORT_TEXT,
    XR_ID,
)
from soundmark_sdk.shapes import read_intent, read_policy

ArchiveFormat: TypeAlias = Literal["svc-project-archive-v1", "svc-organization-archive-v1"]

_DIGEST_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_SCOPES: Final = frozenset({"audience:read", "audience:write", "codes:read", "codes:write"})


@dataclass(frozen=True, slots=True)
class RecordList:
    """A list of an archive: the shape of its records, and the members by which they are in ascending order."""

    shape: Shape
    order: tuple[str, str] = ("created_at", "id")


@dataclass(frozen=True, slots=True)
class ArchiveLayout:
    """The members of a format before `verification_keys`, in their order.

    `subject` is the member that the archive is about. A check or shape is that of a single value.
    """

    subject: Literal["project", "organization"]
    members: "Mapping[str, Check | Shape | RecordList]"


def _is_intent(value: Any) -> bool:
    try:
        read_intent(value)
    except Unverifiable:
        return False
    return True


def _is_policy(value: Any) -> bool:
    try:
        read_policy(value)
    except Unverifiable:
        return False
    return True


def _is_scopes(value: Any) -> bool:
    is_list = isinstance(value, list) and all(isinstance(scope, str) for scope in value)
    return is_list and len(value) == len(set(value)) > 0 and set(value) <= _SCOPES


_ROLE: Final = one_of("owner", "admin", "member", "billing")
_TENANT: Final[Shape] = {"organization_id": matching(ORGANIZATION_ID), "project_id": matching(PROJECT_ID)}

_ORGANIZATION: Final[Shape] = {
    "id": matching(ORGANIZATION_ID),
    "name": is_text,
    "role": _ROLE,
    "created_at": is_timestamp,
    "deletion_requested_at": optional(is_timestamp),
}
_PROJECT: Final[Shape] = {
    "id": matching(PROJECT_ID),
    "organization_id": matching(ORGANIZATION_ID),
    "name": is_text,
    "created_at": is_timestamp,
    "deletion_requested_at": optional(is_timestamp),
}
_MEMBER: Final[Shape] = {"subject_id": is_text, "email": is_text, "role": _ROLE, "created_at": is_timestamp}
_CAMPAIGN: Final[Shape] = {
    "id": matching(CAMPAIGN_ID),
    **_TENANT,
    "name": is_text,
    "starts_at": optional(is_timestamp),
    "ends_at": optional(is_timestamp),
    "status": one_of("active", "archived"),
    "created_at": is_timestamp,
    "archived_at": optional(is_timestamp),
}
_SIGNED_CODE: Final[Shape] = {
    "version": is_version_1,
    "xr_id": matching(XR_ID),
    **_TENANT,
    "campaign_id": optional(matching(CAMPAIGN_ID)),
    "issuer": matching(SHORT_TEXT),
    "issued_at": is_timestamp,
    "expires_at": is_timestamp,
    "intent": _is_intent,
    "policy": _is_policy,
    "token_digest": encoding(_DIGEST_BYTES),
    "key_id": matching(SHORT_TEXT),
    "signature": encoding(_SIGNATURE_BYTES),
}
_CODE: Final[Shape] = {
    "xr_id": matching(XR_ID),
    **_TENANT,
    "campaign_id": optional(matching(CAMPAIGN_ID)),
    "issuer": matching(SHORT_TEXT),
    "issued_at": is_timestamp,
    "expires_at": is_timestamp,
    "broadcast_token": matching(BROADCAST_TOKEN),
    "broadcast_frame": matching(BROADCAST_FRAME),
    "status": one_of("active", "expired", "revoked"),
    "revoked_at": optional(is_timestamp),
    "audience_enabled": is_boolean,
    "audience_integration_id": optional(matching(INTEGRATION_ID)),
    "intent": is_object,
    "signed_code": _SIGNED_CODE,
}
_API_KEY: Final[Shape] = {
    "id": matching(API_KEY_ID),
    **_TENANT,
    "scopes": _is_scopes,
    "status": one_of("active", "expired", "revoked"),
    "created_at": is_timestamp,
    "expires_at": is_timestamp,
    "last_used_at": optional(is_timestamp),
    "secret_rotated_at": optional(is_timestamp),
    "revoked_at": optional(is_timestamp),
}
_INTEGRATION: Final[Shape] = {
    "id": matching(INTEGRATION_ID),
    **_TENANT,
    "mode": one_of("demo", "contract", "self_service"),
    "retention_days": is_count,
    "status": one_of("active", "revoked"),
    "core_key_id": matching(SHORT_TEXT),
    "created_at": is_timestamp,
    "secret_rotated_at": optional(is_timestamp),
    "revoked_at": optional(is_timestamp),
}

_OF_PROJECTS: Final = {
    "campaigns": RecordList(_CAMPAIGN),
    "codes": RecordList(_CODE, order=("issued_at", "xr_id")),
    "api_keys": RecordList(_API_KEY),
    "audience_integrations": RecordList(_INTEGRATION),
}
LAYOUTS: Final[Mapping[str, ArchiveLayout]] = {
    "svc-project-archive-v1": ArchiveLayout(
        "project",
        {
            "format": is_text,
            "exported_at": is_timestamp,
            "organization_id": matching(ORGANIZATION_ID),
            "project": _PROJECT,
            **_OF_PROJECTS,
        },
    ),
    "svc-organization-archive-v1": ArchiveLayout(
        "organization",
        {
            "format": is_text,
            "exported_at": is_timestamp,
            "organization": _ORGANIZATION,
            "members": RecordList(_MEMBER, order=("created_at", "subject_id")),
            "projects": RecordList(_PROJECT),
            **_OF_PROJECTS,
        },
    ),
}
SEAL: Final[Shape] = {
    "version": is_version_1,
    "format": one_of(*LAYOUTS),
    "subject_id": lambda value: matching(PROJECT_ID)(value) or matching(ORGANIZATION_ID)(value),
    "exported_at": is_timestamp,
    "digest": encoding(_DIGEST_BYTES),
    "key_id": matching(SHORT_TEXT),
    "signature": encoding(_SIGNATURE_BYTES),
}
