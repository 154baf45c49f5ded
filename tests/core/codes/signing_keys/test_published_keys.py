"""The published keys and their history: a key is published before it signs."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator

import pytest
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.core.features.codes.signing_keys import service
from soundmark.core.live.keyring import LiveKeyring
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey, verifies
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

from .conftest import Keys, read_published_keys, read_signer


@contextlib.asynccontextmanager
async def two_cores(url: Secret) -> AsyncIterator[tuple[Api, Api]]:
    settings = core_settings(url)
    async with running_core(settings) as one, running_core(settings) as other:
        yield one, other


async def test_the_published_jwk_set_holds_all_keys_except_retired_ones(spare_database_url: Secret, keys: Keys) -> None:
    await keys.make_one_of_each()
    records = {record.key_id: record for record in await service.list_keys(keys.ctx)}
    async with running_core(core_settings(spare_database_url)) as api:
        answer = await api.other(token=None).get("/v1/keys")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.json == {
        "keys": [
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "alg": "EdDSA",
                "use": "sig",
                "kid": record.key_id,
                "x": base64.urlsafe_b64encode(record.public_key).decode().rstrip("="),
                "status": record.status,
            }
            for record in records.values()
            if record.status != "retired"
        ]
    }
    assert len(answer.json["keys"]) == 3


async def test_the_history_is_a_jwk_set_of_every_key_that_ever_signed(spare_database_url: Secret, keys: Keys) -> None:
    """Including retired keys, each with the time during which it signed, but not a key that has never signed."""
    await keys.make_one_of_each()
    records = await service.list_keys(keys.ctx)
    async with running_core(core_settings(spare_database_url)) as api:
        answer = await api.other(token=None).get("/v1/keys/history")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.json == {
        "keys": [
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "alg": "EdDSA",
                "use": "sig",
                "kid": record.key_id,
                "x": base64.urlsafe_b64encode(record.public_key).decode().rstrip("="),
                "status": record.status,
                "activated_at": format_timestamp(record.activated_at),
                "superseded_at": format_timestamp(record.superseded_at) if record.superseded_at else None,
            }
            for record in records
            if record.activated_at is not None
        ]
    }
    statuses = [(key["status"], key["superseded_at"] is None) for key in answer.json["keys"]]
    assert statuses == [("retired", False), ("retiring", False), ("active", True)]
    retired, retiring, active = answer.json["keys"]
    assert retired["superseded_at"] == retiring["activated_at"]
    assert retiring["superseded_at"] == active["activated_at"]


async def test_a_code_signed_by_a_retired_key_verifies_with_the_history(spare_database_url: Secret, keys: Keys) -> None:
    async with running_core(core_settings(spare_database_url), keys.clock) as api:
        tenant = await make_tenant(api)
        code = await tenant.make_code(lifetime_s=60)
        old = code["signed_code"]["key_id"]
        await keys.rotate()
        keys.clock.advance(minutes=6)
        await keys.retire(old)
        history = (await api.get("/v1/keys/history")).json["keys"]
    (key,) = [key for key in history if key["kid"] == old]
    signed_code = dict(code["signed_code"])
    signature = base64url.decode(signed_code.pop("signature"))
    assert key["status"] == "retired"
    assert verifies(base64url.decode(key["x"]), canonicalize(signed_code), signature)


async def test_a_key_that_core_did_not_make_is_not_in_the_history(
    spare_database_url: Secret, keys: Keys, rival: Rival
) -> None:
    """Otherwise write access to the database would be enough to pass off an old Code."""
    await keys.make_one_of_each()
    planted = SigningKey.from_seed("sig_planted", bytes(32))
    await rival.run(
        "INSERT INTO signing_keys (key_id, public_key, status, created_at, activated_at, superseded_at, retired_at,"
        " sealed_public_key) VALUES (%s, %s, 'retired', now(), now(), now(), now(), 'x')",
        planted.key_id,
        planted.public_key,
    )
    async with running_core(core_settings(spare_database_url)) as api:
        history = (await api.get("/v1/keys/history")).json["keys"]
    assert planted.key_id not in {key["kid"] for key in history}
    assert len(history) == 3


async def test_a_key_is_published_by_every_process_before_any_signs_with_it(
    spare_database_url: Secret, keys: Keys
) -> None:
    """A receiver that does not know the key asks any process, and must find it there."""
    async with two_cores(spare_database_url) as (one, other):
        code = await (await make_tenant(one)).make_code()
        old = await read_signer(one, code["broadcast_token"])
        staged = await keys.stage()
        for api in (one, other):
            assert await read_published_keys(api) == {old: "active", staged: "next"}
            assert await read_signer(api, code["broadcast_token"]) == old
        await keys.activate(staged)
        for api in (one, other):
            assert await read_published_keys(api) == {old: "retiring", staged: "active"}


async def test_every_process_signs_with_a_new_key_without_a_restart(
    spare_database_url: Secret, keys: Keys, live_keyrings: list[LiveKeyring]
) -> None:
    """And Codes signed with the old key still resolve and verify at both."""
    async with two_cores(spare_database_url) as cores:
        tenants = [await make_tenant(api) for api in cores]
        before = [(await tenant.make_code())["broadcast_token"] for tenant in tenants]
        new = await keys.rotate()
        for api, live_keyring in zip(cores, live_keyrings, strict=True):
            await live_keyring.refresh()
            # The envelope shared by the receivers of one token is at most a second old.
            api.clock.advance(seconds=1)
        after = [await tenant.make_code() for tenant in tenants]
        assert {code["signed_code"]["key_id"] for code in after} == {new}
        tokens = [*before, *(code["broadcast_token"] for code in after)]
        assert {await read_signer(api, token) for api in cores for token in tokens} == {new}


async def test_a_code_of_a_key_that_this_process_has_not_heard_of_is_resolved(
    spare_database_url: Secret, keys: Keys, live_keyrings: list[LiveKeyring], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issued by the other process a moment after the rotation."""
    monkeypatch.setattr(LiveKeyring, "keep_current", asyncio.Event().wait)
    async with two_cores(spare_database_url) as (one, other):
        tenant = await make_tenant(one)
        new = await keys.rotate()
        await live_keyrings[0].refresh()
        code = await tenant.make_code()
        assert code["signed_code"]["key_id"] == new
        assert new not in live_keyrings[1].keyring.keys
        assert await read_signer(other, code["broadcast_token"]) == new
