"""The closed shapes of the wire, read member by member into records."""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from soundmark_sdk import timestamps
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.records import Intent, MeasurementProof, Policy
from soundmark_sdk.strict_json import JsonValue, canonical

# Id shapes: API v1, "Identifier shapes". The token's length: wire contract, section 1.
BROADCAST_TOKEN: Final = re.compile(r"brd_[A-Za-z0-9_-]{16}")
XR_ID: Final = re.compile(r"xr_[A-Za-z0-9_-]{16,}")
INTEGRATION_ID: Final = re.compile(r"int_[A-Za-z0-9_-]{8,}")
CAMPAIGN_ID: Final = re.compile(r"cmp_[A-Za-z0-9_-]{16,}")
PROOF_ID: Final = re.compile(r"prf_[A-Za-z0-9_-]{16,}")
ORGANIZATION_ID: Final = re.compile(r"org_[A-Za-z0-9_-]+")
PROJECT_ID: Final = re.compile(r"prj_[A-Za-z0-9_-]+")
# SHA-256 and Ed25519 signatures in unpadded base64url.
DIGEST: Final = re.compile(r"[A-Za-z0-9_-]{43}")
SIGNATURE: Final = re.compile(r"[A-Za-z0-9_-]{86}")
# Intent types and actions, issuers and key ids are 1 to 160 characters of any kind.
SHORT_TEXT: Final = re.compile(r".{1,160}", re.DOTALL)

# Wire contract, section 3, "Intent".
INTENT_DEPTH_MAX: Final = 32
INTENT_BYTES_MAX: Final = 16 * 1024

_INTENT: Final = frozenset({"type", "action", "resource"})
_POLICY: Final = frozenset({"audience_measurement", "audience_integration_id"})
_PROOF: Final = frozenset(
    {"xr_id", "integration_id", "campaign_id", "issued_at", "expires_at", "key_id", "signature"},
)


def read_members(
    value: JsonValue,
    required: AbstractSet[str],
    optional: AbstractSet[str] = frozenset(),
) -> Mapping[str, JsonValue]:
    """Return a closed object's members: all of `required`, some of `optional`, no other.

    Raises: Unverifiable.
    """
    if not isinstance(value, dict) or not (required <= value.keys() <= required | optional):
        raise Unverifiable("An object does not have exactly the members of its shape.")
    return value


def read_text(value: JsonValue, pattern: re.Pattern[str]) -> str:
    """Return a text that matches its pattern from end to end.

    Raises: Unverifiable.
    """
    if not isinstance(value, str) or pattern.fullmatch(value) is None:
        raise Unverifiable("A text does not have its shape.")
    return value


def read_version(value: JsonValue) -> None:
    """Pass only the integer 1; `true` and `1.0` are other versions.

    Raises: Unverifiable.
    """
    if type(value) is not int or value != 1:
        raise Unverifiable("The version is not 1.")


def canonical_intent(value: JsonValue) -> bytes:
    """Return an intent's canonical bytes.

    Raises: Unverifiable, also for more than 32 levels or 16 KiB.
    Source: wire contract, section 3, "Intent".
    """
    text = canonical(value, depth_max=INTENT_DEPTH_MAX)
    if len(text) > INTENT_BYTES_MAX:
        raise Unverifiable("The intent is too large.")
    return text


def read_intent(value: JsonValue) -> Intent:
    """Return the intent that a closed JSON object holds.

    Raises: Unverifiable, also for more than 32 levels or 16 KiB of canonical bytes.
    Source: wire contract, section 3, "Intent".
    """
    canonical_intent(value)
    members = read_members(value, _INTENT)
    resource = members["resource"]
    if not isinstance(resource, dict):
        raise Unverifiable("The intent's resource is not an object.")
    return Intent(read_text(members["type"], SHORT_TEXT), read_text(members["action"], SHORT_TEXT), resource)


def read_policy(value: JsonValue) -> Policy:
    """Return the policy that a closed JSON object holds; the integration is named exactly when measuring is on.

    Raises: Unverifiable.
    Source: API v1, "Receiver resolution response", conditional rules 1 and 2.
    """
    members = read_members(value, _POLICY)
    measurement, integration_id = members["audience_measurement"], members["audience_integration_id"]
    if measurement is True:
        return Policy(audience_measurement=True, audience_integration_id=read_text(integration_id, INTEGRATION_ID))
    if measurement is not False or integration_id is not None:
        raise Unverifiable("The policy contradicts itself.")
    return Policy(audience_measurement=False, audience_integration_id=None)


def read_measurement_proof(value: JsonValue) -> MeasurementProof:
    """Return the measurement proof that a closed JSON object holds; nothing about it is verified yet.

    Raises: Unverifiable.
    Source: API v1, "Measurement proof".
    """
    members = read_members(value, _PROOF, {"proof_id"})
    return MeasurementProof(
        # Absent in the shape before `proof_id`; null is in neither shape.
        proof_id=read_text(members["proof_id"], PROOF_ID) if "proof_id" in members else None,
        xr_id=read_text(members["xr_id"], XR_ID),
        integration_id=read_text(members["integration_id"], INTEGRATION_ID),
        campaign_id=read_campaign_id(members["campaign_id"]),
        issued_at=timestamps.parse(members["issued_at"]),
        expires_at=timestamps.parse(members["expires_at"]),
        key_id=read_text(members["key_id"], SHORT_TEXT),
        signature=read_text(members["signature"], SIGNATURE),
    )


def read_campaign_id(value: JsonValue) -> str | None:
    """Return a campaign's id, or None for a Code without a campaign.

    Raises: Unverifiable.
    """
    return None if value is None else read_text(value, CAMPAIGN_ID)
