"""The response to a receiver."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, field_validator

from soundmark.wire.shape import CampaignId, IntegrationId, KeyId, ProofId, Signature, Timestamp, Wire, XrId
from soundmark.wire.xr_code import Intent, Policy


def _forbid_null(schema: dict[str, Any], name: str) -> None:
    # Pydantic describes an optional member as "or null"; on the wire it is present or absent.
    member = schema["properties"][name]
    member.pop("default")
    member.update(member.pop("anyOf")[0])


class MeasurementProof(Wire):
    """Core's signed statement that a Code was just resolved. Every Audience event must include one."""

    model_config = ConfigDict(json_schema_extra=lambda schema: _forbid_null(schema, "proof_id"))

    proof_id: Annotated[
        ProofId | None,
        Field(description="Present in every new proof; absent from proofs signed before it was introduced."),
    ] = None
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
        # Present or absent, as in the schema: null would be a third spelling of what is signed.
        if proof_id is None:
            raise ValueError("must be a string or absent")
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
    _forbid_null(schema, "measurement_proof")
    _forbid_null(schema, "resolution_proof")
    # `measurement_proof` is present exactly if the policy says so, and then names the policy's integration.
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
    """An intent that Core has verified. Receivers must verify `resolution_proof` and must not trust anything else."""

    model_config = ConfigDict(json_schema_extra=_when_measured)

    xr_id: XrId
    signature_status: Literal["verified"]
    intent: Intent
    policy: Policy
    measurement_proof: Annotated[MeasurementProof | None, Field(description="Present if the Code is measured.")] = None
    resolution_proof: Annotated[
        ResolutionProof | None, Field(description="Present if requested with `X-Svc-Resolution-Proof`.")
    ] = None
