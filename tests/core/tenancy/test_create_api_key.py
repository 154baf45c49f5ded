"""`POST /v1/api-keys`: a secret shown once, a digest stored, one project."""

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api, pointers
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp

SCOPES = ["audience:read", "audience:write", "codes:read", "codes:write"]


async def create(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/api-keys", json=tenant.key_body(**changes))


async def test_a_key_is_answered_with_its_secret(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    answer = await create(tenant, scopes=["codes:write", "codes:read"], expires_in_days=30)
    assert answer.status == 201
    key = answer.json
    assert re.fullmatch(r"key_[A-Za-z0-9_-]{22}", key["id"])
    assert re.fullmatch(r"xak_[A-Za-z0-9_-]{43}", key["secret"])
    assert key == {
        "id": key["id"],
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "name": None,
        "scopes": ["codes:read", "codes:write"],
        "status": "active",
        "created_at": format_timestamp(now),
        "expires_at": format_timestamp(now + timedelta(days=30)),
        "last_used_at": None,
        "secret_rotated_at": None,
        "revoked_at": None,
        "secret": key["secret"],
    }
    assert (await tenant.with_key(key).api.get("/v1/codes", params=tenant.query)).status == 200


async def test_the_secret_is_stored_as_its_digest_alone(tenant: Tenant, rival: Rival) -> None:
    """In any table, for any purpose."""
    secret = (await tenant.make_key())["secret"]
    assert await rival.rows("SELECT digest FROM api_key_digests") == [(hashlib.sha256(secret.encode()).digest(),)]
    tables = [name for (name,) in await rival.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
    for table in tables:
        found = await rival.rows(f'SELECT 1 FROM "{table}" t WHERE strpos(t::text, %s) > 0', secret[4:])
        assert found == [], table


@pytest.mark.parametrize("scopes", [["codes:read"], SCOPES[::-1]], ids=str)
async def test_scopes_are_a_set(tenant: Tenant, scopes: list[str]) -> None:
    assert (await create(tenant, scopes=scopes)).json["scopes"] == sorted(scopes)


@pytest.mark.parametrize(
    "scopes",
    [[], ["codes:read", "codes:read"], ["codes:admin"], "codes:read"],
    ids=str,
)
async def test_other_scopes_are_refused(tenant: Tenant, rival: Rival, scopes: Any) -> None:
    (pointer,) = set(pointers(await create(tenant, scopes=scopes)))
    assert pointer.startswith("/scopes")
    assert await rival.rows("SELECT 1 FROM api_keys") == []


async def test_a_key_lives_90_days_by_default(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    assert (await create(tenant)).json["expires_at"] == format_timestamp(now + timedelta(days=90))


@pytest.mark.parametrize("days", [1, 365])
async def test_a_key_lives_1_to_365_days(api: Api, tenant: Tenant, days: int) -> None:
    now = api.clock.freeze()
    answer = await create(tenant, expires_in_days=days)
    assert (answer.status, answer.json["expires_at"]) == (201, format_timestamp(now + timedelta(days=days)))


@pytest.mark.parametrize("days", [0, 366, 1.5, "30"], ids=repr)
async def test_another_lifetime_is_refused(tenant: Tenant, days: Any) -> None:
    assert pointers(await create(tenant, expires_in_days=days)) == ["/expires_in_days"]


async def test_the_log_names_the_creator_and_not_the_secret(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key(expires_in_days=7)
    metadata = {"api_key_id": key["id"], "scopes": ["codes:read", "codes:write"], "expires_in_days": 7}
    assert await rival.audited("api_key.created") == [("user operator", tenant.project_id, metadata)]


async def test_a_project_deleted_during_the_wait_is_not_found(tenant: Tenant, rival: Rival) -> None:
    async with rival.committing("DELETE FROM projects"):
        creating = await rival.while_waiting(create(tenant))
    assert ((await creating).status, (await creating).code) == (404, "project_not_found")
