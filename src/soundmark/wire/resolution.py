"""What a receiver is answered."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, field_validator

from soundmark.wire.shape import CampaignId, IntegrationId, KeyId, ProofId, Signature, Timestamp, Wire, XrId
from soundmark.wire.xr_code import Intent, Policy


def _absent_not_null(schema: dict[str, Any], name: str) -> None:
    # Pydantic states an optional member as "or null"; on the wire it is there or it is not.
    member = schema["properties"][name]
    member.pop("default")
    member.update(member.pop("anyOf")[0])


class MeasurementProof(Wire):
    """Core's word that a Code was resolved just now; what an Audience event has to carry."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _absent_not_null(schema, "proof_id"))

    proof_id: Annotated[ProofId | None, Field(description="There in every proof since v1 was extended by it.")] = None
    xr_id: XrId
    integration_id: IntegrationId
    campaign_id: CampaignId | None
    issued_at: Timestamp
    expires_at: Timestamp
    key_id: KeyId
    signature: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43,}$")]

    @field_validator("proof_id")
    @classmethod
    def _is_not_null(cls, proof_id: str | None) -> str:
        # There or absent, as the schema says: null would be a third spelling of what is signed.
        if proof_id is None:
            raise ValueError("must be a text, or absent")
        return proof_id


class ResolutionProof(Wire):
    """The signed envelope: `payload` holds the exact JSON bytes that `signature` covers."""

    version: Literal[1]
    key_id: KeyId
    issued_at: Timestamp
    expires_at: Timestamp
    payload: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{64,}$", max_length=65536)]
    signature: Signature


def _when_measured(schema: dict[str, Any]) -> None:
    _absent_not_null(schema, "measurement_proof")
    _absent_not_null(schema, "resolution_proof")
    # `measurement_proof` is there exactly when the policy says so, and then names the policy's integration.
    schema["if"] = {"properties": {"policy": {"properties": {"audience_measurement": {"const": True}}}}}
    schema["then"] = {
        "required": ["measurement_proof"],
        "properties": {
            "measurement_proof": {},
            "policy": {"properties": {"audience_integration_id": {"type": "string"}}},
        },
    }
    schema["else"] = {
        "properties": {
            "measurement_proof": False,
            "policy": {"properties": {"audience_integration_id": {"type": "null"}}},
        }
    }


class Resolution(Wire):
    """An intent that Core verified. Receivers verify `resolution_proof` themselves and trust nothing else."""

    model_config = ConfigDict(json_schema_extra=_when_measured)

    xr_id: XrId
    signature_status: Literal["verified"]
    intent: Intent
    policy: Policy
    measurement_proof: Annotated[MeasurementProof | None, Field(description="There when the Code is measured.")] = None
    resolution_proof: Annotated[
        ResolutionProof | None, Field(description="There when it was asked for with `X-Svc-Resolution-Proof`.")
    ] = None
