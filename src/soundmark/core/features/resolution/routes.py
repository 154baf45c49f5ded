"""`GET /v1/keys`."""

from fastapi import APIRouter
from starlette.responses import Response

from soundmark.core.edge import PUBLIC, Ctx
from soundmark.core.features.resolution.wire import KeySet, verification_key
from soundmark.core.store import signing_keys
from soundmark.kit.http import StrictRoute

router = APIRouter(route_class=StrictRoute, tags=["Receivers"])


@router.get("/v1/keys", openapi_extra=PUBLIC)
async def list_keys(ctx: Ctx, response: Response) -> KeySet:
    """Read the public keys that answers are signed with.

    Read from the database each time: a key is published from the moment that any process may sign with it.
    """
    async with ctx.db.transaction() as tx:
        records = await signing_keys.list_all(tx)
    response.headers["cache-control"] = "public, max-age=60"
    return KeySet(
        keys=[
            verification_key(record.key_id, record.public_key, record.status)
            for record in ctx.custody.ours(records)
            if record.status != "retired"
        ]
    )
