"""The request shape of contracts. The response shape is in `views`."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints

from soundmark.core.edge.ids import UnboundedId
from soundmark.wire.shape import NO_CONTROL_CHARS, Timestamp, Wire

ContractReference = Annotated[
    str,
    StringConstraints(min_length=1, max_length=160, pattern=NO_CONTROL_CHARS),
    Field(description="Your own reference for the contract, unique among organisations (else 409)."),
]


class PutAudienceContract(Wire):
    """A contract for measuring. `plan_id` names an active plan of Audience (else 422)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "plan_id": "plan_audience_contract",
                    "contract_reference": "2027-014",
                    "status": "active",
                    "period_end": "2028-01-01T00:00:00.000Z",
                }
            ]
        }
    )

    plan_id: UnboundedId
    contract_reference: ContractReference
    status: Literal["active", "cancelled"]
    period_end: Annotated[
        Timestamp | None,
        Field(
            description="When the contract ends; null or absent: never. Must be in the future if `active` is true "
            "(else 422)."
        ),
    ] = None
