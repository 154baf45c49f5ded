"""The route of Core's keys."""

from typing import Annotated, Final

from fastapi import APIRouter
from pydantic import Field, StringConstraints

from soundmark.audience.edge import Ctx
from soundmark.audience.features.core_keys import service
from soundmark.audience.wire import CoreKey, PublicKey
from soundmark.kit.http import JsonRoute
from soundmark.wire.shape import KeyId, Wire

router = APIRouter(route_class=JsonRoute)

_STEP_MAX: Final = 1000  # Rows that one step locks: some milliseconds.


class TrustEverywhere(Wire):
    """A key that every integration is to trust, and where to go on.

    `still_signs` names the key that goes on signing until everybody was told; null where that is over.
    """

    key_id: KeyId
    public_key: PublicKey
    after: Annotated[str, StringConstraints(pattern=r"^int_[A-Za-z0-9_-]{8,128}$")] | None
    limit: Annotated[int, Field(ge=1, le=_STEP_MAX)]
    still_signs: KeyId | None


class Trusting(Wire):
    """Who trusts it now, and behind whom to go on; null where nobody is left."""

    data: list[str]
    next: str | None


@router.post("/v1/core-keys")
async def trust_everywhere(ctx: Ctx, body: TrustEverywhere) -> Trusting:
    """Have the next integrations trust a key."""
    key = CoreKey(key_id=body.key_id, public_key=body.public_key)
    ids = await service.trust_everywhere(
        ctx, key.trusted(), still_signs=body.still_signs, after=body.after, limit=body.limit
    )
    return Trusting(data=ids, next=ids[-1] if len(ids) == body.limit else None)
