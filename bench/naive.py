"""Resolution in its simplest form: a FastAPI route, a pooled look-up, everything verified and signed each time.

It answers the same bytes for the same token, without rate limit, batches, caches or sharing.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi import FastAPI, HTTPException
from psycopg_pool import AsyncConnectionPool

from soundmark.core.domain.codes.code import digest_of
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.settings import CoreSettings


def naive_app(settings: CoreSettings) -> FastAPI:
    """Return the naive service, which connects on its first request."""
    app = FastAPI(openapi_url=None)
    pool = AsyncConnectionPool(settings.core_database_url.reveal(), max_size=10, open=False)
    keys: dict[str, Ed25519PrivateKey] = {}

    async def load_key() -> None:
        await pool.open()
        sealer = Sealer(parse_master_key(settings.master_key.reveal()), SystemEntropy())
        async with pool.connection() as connection:
            row = await (
                await connection.execute("SELECT key_id, sealed_seed FROM signing_keys WHERE status = 'active'")
            ).fetchone()
        assert row is not None, "Core made a key when it started"
        seed = sealer.unseal(row[1], table="signing_keys", column="sealed_seed", row=row[0])
        keys[row[0]] = Ed25519PrivateKey.from_private_bytes(seed)

    @app.get("/naive/{token}")
    async def resolve(token: str) -> dict[str, Any]:
        if not keys:
            await load_key()
        async with pool.connection() as connection:
            cursor = await connection.execute(
                "SELECT payload, signature FROM broadcasts WHERE token = %s AND revoked_at IS NULL", (token,)
            )
            row = await cursor.fetchone()
        if row is None:
            raise HTTPException(404)
        code = json.loads(row[0])
        key = keys[code["key_id"]]
        try:
            key.public_key().verify(row[1], row[0])
        except InvalidSignature:
            raise HTTPException(404) from None
        now = datetime.now(UTC)
        if code["token_digest"] != digest_of(token) or format_timestamp(now) >= code["expires_at"]:
            raise HTTPException(404)
        return _answer(code, key, now)

    return app


def _answer(code: dict[str, Any], key: Ed25519PrivateKey, now: datetime) -> dict[str, Any]:
    times = {"issued_at": format_timestamp(now), "expires_at": format_timestamp(now + timedelta(minutes=2))}
    shared = {"intent": code["intent"], "policy": code["policy"], "xr_id": code["xr_id"]}
    payload = rfc8785.dumps(
        {"version": 1, "token_digest": code["token_digest"], "key_id": code["key_id"], **shared, **times}
    )
    envelope = {
        "version": 1,
        "key_id": code["key_id"],
        **times,
        "payload": base64url.encode(payload),
        "signature": base64url.encode(key.sign(payload)),
    }
    return {**shared, "signature_status": "verified", "resolution_proof": envelope}
