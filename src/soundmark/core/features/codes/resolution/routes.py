"""`GET /v1/keys` and `GET /v1/keys/history`."""

from typing import Final

from starlette.responses import Response

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx
from soundmark.core.features.codes.resolution import example
from soundmark.core.features.codes.resolution.wire import KeyHistory, KeySet, verification_key
from soundmark.core.store.codes import signing_keys
from soundmark.core.views.signing_keys import key_history_view

operations = Operations("Receivers")

_CACHED: Final = "public, max-age=60"  # Contract, section 1.


@operations.add("GET", "/v1/keys", Operation(None), example=example.KEYS)
async def list_keys(ctx: Ctx, response: Response) -> KeySet:
    """Return the public keys that verify Codes, envelopes and proofs.

    A key is published before anything is signed with it.
    """
    # Read from the database each time: a key must be published before any process may sign with it.
    records = await _read_keys(ctx)
    response.headers["cache-control"] = _CACHED
    return KeySet(
        keys=[
            verification_key(record.key_id, record.public_key, record.status)
            for record in records
            if record.status != "retired"
        ]
    )


@operations.add("GET", "/v1/keys/history", Operation(None), example=example.KEY_HISTORY)
async def list_key_history(ctx: Ctx, response: Response) -> KeyHistory:
    """Return every public key ever used for signing, including retired keys, to verify old Codes and archives.

    Receivers must use only `/v1/keys`: they must not trust a new response that is signed with a retired key.
    """
    records = await _read_keys(ctx)
    response.headers["cache-control"] = _CACHED
    return KeyHistory(keys=key_history_view(records))


async def _read_keys(ctx: RequestContext) -> list[SigningKeyRecord]:
    async with ctx.db.transaction() as tx:
        records = await signing_keys.list_all(tx)
    return ctx.live_keyring.ours(records)
