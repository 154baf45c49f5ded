"""Read the closed objects of the wire into records."""

from typing import Final

from soundmark_sdk import timestamps
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.members import (
    INTEGRATION_ID,
    PROOF_ID,
    SHORT_TEXT,
    SIGNATURE,
    XR_ID,
    read_campaign_id,
    read_members,
    read_text,
)
from soundmark_sdk.records import Intent, MeasurementProof, Policy
from soundmark_sdk.strict_json import JsonValue, canonicalize

# Wire contract, section 3, "Intent".
INTENT_DEPTH_MAX: Final = 32
INTENT_BYTES_MAX: Final = 16 * 1024

_INTENT: Final = frozenset({"type", "action", "resource"})
_POLICY: Final = frozenset({"audience_measurement", "audience_integration_id"})
_PROOF: Final = frozenset(
    {"xr_id", "integration_id", "campaign_id", "issued_at", "expires_at", "key_id", "signature"},
)


def canonicalize_intent(value: JsonValue) -> bytes:
    """Return the canonical bytes of an intent.

    Raises: Unverifiable, also for more than 32 levels or 16 KiB.
    Source: wire contract, section 3, "Intent".
    """
    text = canonicalize(value, depth_max=INTENT_DEPTH_MAX)
    if len(text) > INTENT_BYTES_MAX:
        raise Unverifiable("The intent is too large.")
    return text


def read_intent(value: JsonValue) -> Intent:
    """Return the intent in a closed JSON object.

    Raises: Unverifiable, also for more than 32 levels or 16 KiB of canonical bytes.
    Source: wire contract, section 3, "Intent".
    """
    canonicalize_intent(value)
    members = read_members(value, _INTENT)
    resource = members["resource"]
    if not isinstance(resource, dict):
        raise Unverifiable("The intent's resource is not an object.")
    return Intent(read_text(members["type"], SHORT_TEXT), read_text(members["action"], SHORT_TEXT), resource)


def is_intent(value: JsonValue) -> bool:
    """Return whether `read_intent` accepts a value."""
    try:
        read_intent(value)
    except Unverifiable:
        return False
    return True


def read_policy(value: JsonValue) -> Policy:
    """Return the policy in a closed JSON object; it names an integration exactly when measuring is on.

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
    """Return the measurement proof in a closed JSON object, without verifying anything about it.

    Raises: Unverifiable.
    Source: API v1, "Measurement proof".
    """
    members = read_members(value, _PROOF, {"proof_id"})
    return MeasurementProof(
        # The older shape has no `proof_id`; neither shape has null.
        proof_id=read_text(members["proof_id"], PROOF_ID) if "proof_id" in members else None,
        xr_id=read_text(members["xr_id"], XR_ID),
        integration_id=read_text(members["integration_id"], INTEGRATION_ID),
        campaign_id=read_campaign_id(members["campaign_id"]),
        issued_at=timestamps.parse(members["issued_at"]),
        expires_at=timestamps.parse(members["expires_at"]),
        key_id=read_text(members["key_id"], SHORT_TEXT),
        signature=read_text(members["signature"], SIGNATURE),
    )
