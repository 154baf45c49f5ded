"""A signing key must be Core's own, whoever wrote it into the database."""

import pytest
from prometheus_client import REGISTRY
from support.api.core_client import Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.core.domain.codes.code import digest_of
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey

STRANGER = SigningKey.from_seed("sig_" + "s" * 22, b"s" * 32)
INSERT = (
    "INSERT INTO signing_keys (key_id, public_key, sealed_seed, status, created_at, activated_at, superseded_at,"
    " retired_at, sealed_public_key)"
    " SELECT %s, %s, CASE WHEN %s = 'retired' THEN NULL ELSE sealed_seed END, %s, created_at, activated_at, now(),"
    " now(), {} FROM signing_keys WHERE status = 'active'"
)


def alarms() -> float:
    return REGISTRY.get_sample_value("soundmark_integrity_failures_total", {"reader": "keyring"}) or 0.0


@pytest.fixture
def everything(cluster: RunningCluster) -> Rival:
    """Somebody who may write anything to the spare database."""
    return Rival(cluster.superuser_url_of("core_spare"))


async def forge(everything: Rival, code: dict[str, str], signed: dict[str, object]) -> str:
    """Store a Code changed as `code` says, signed by the stranger, and return its token."""
    token = "brd_" + "f" * 16
    payload = canonicalize({**signed, "key_id": STRANGER.key_id, "token_digest": digest_of(token)})
    statement = "INSERT INTO broadcasts (token, payload, signature, organization_id) VALUES (%s, %s, %s, 'org_x')"
    await everything.run(statement, token, payload, STRANGER.sign(payload))
    assert code["broadcast_token"] != token
    return token


@pytest.mark.parametrize("copy", ["sealed_public_key", "sealed_seed", "'x'::bytea"])
@pytest.mark.parametrize("status", ["next", "retiring", "retired"])
async def test_a_key_that_core_did_not_make_is_not_used(
    spare_database_url: Secret, everything: Rival, status: str, copy: str
) -> None:
    """Otherwise anybody who can write to the database could sign as everybody."""
    async with running_core(core_settings(spare_database_url)) as api:
        code = await (await make_tenant(api)).make_code()
        signed = {name: value for name, value in code["signed_code"].items() if name != "signature"}
        before = alarms()
        await everything.run(INSERT.format(copy), STRANGER.key_id, STRANGER.public_key, status, status)
        token = await forge(everything, code, signed)
        answer = await api.resolve(token)
        assert (answer.status, answer.code) == (404, "code_unavailable")
        assert await published(api) == {code["signed_code"]["key_id"]}
        assert (await api.resolve(code["broadcast_token"])).status == 200
        assert alarms() == before + 1, "it is told of once"


async def test_a_replaced_public_key_is_not_trusted(spare_database_url: Secret, everything: Rival) -> None:
    async with running_core(core_settings(spare_database_url)) as api:
        code = await (await make_tenant(api)).make_code()
    await everything.run("UPDATE signing_keys SET public_key = %s", STRANGER.public_key)
    async with running_core(core_settings(spare_database_url)) as api:
        assert await published(api) == set()
        assert (await api.resolve(code["broadcast_token"])).code == "code_unavailable"


async def test_genuine_keys_stay_genuine_while_the_master_key_changes(
    spare_database_url: Secret, everything: Rival
) -> None:
    """A running process cannot open values sealed with the new key, and must not lose its signing keys by that."""
    async with running_core(core_settings(spare_database_url)) as api:
        code = await (await make_tenant(api)).make_code()
        await everything.run("UPDATE signing_keys SET sealed_public_key = 'under another key'")
        assert await published(api) == {code["signed_code"]["key_id"]}
        assert (await api.resolve(code["broadcast_token"])).status == 200


async def published(api: Api) -> set[str]:
    return {key["kid"] for key in (await api.get("/v1/keys")).json["keys"]}
