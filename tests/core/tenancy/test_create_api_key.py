"""`POST /v1/api-keys`: a secret shown once, a digest stored, one project."""

import asyncio
import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

SCOPES = ["audience:read", "audience:write", "codes:read", "codes:write"]


async def create(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/api-keys", json=tenant.key_body(**changes))


def pointers(answer: Answer) -> list[str]:
    assert (answer.status, answer.code) == (422, "validation_failed"), answer.body
    return [error["pointer"] for error in answer.json["errors"]]


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


async def test_every_secret_is_different(tenant: Tenant) -> None:
    keys = [await tenant.make_key() for _ in range(3)]
    assert len({key["secret"] for key in keys}) == len({key["id"] for key in keys}) == 3


@pytest.mark.parametrize("scopes", [["codes:read"], ["audience:write"], SCOPES, SCOPES[::-1]], ids=str)
async def test_scopes_are_a_set(tenant: Tenant, scopes: list[str]) -> None:
    assert (await create(tenant, scopes=scopes)).json["scopes"] == sorted(scopes)


@pytest.mark.parametrize(
    "scopes",
    [
        [],
        ["codes:read", "codes:read"],
        [*SCOPES, "codes:read"],
        ["codes:admin"],
        ["codes:read", ""],
        ["CODES:READ"],
        "codes:read",
        {"codes:read": True},
        [["codes:read"]],
        [1],
        None,
    ],
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


@pytest.mark.parametrize("days", [0, -1, 366, 10**12, 1.5, "30", True, None, []], ids=repr)
async def test_another_lifetime_is_refused(tenant: Tenant, days: Any) -> None:
    assert pointers(await create(tenant, expires_in_days=days)) == ["/expires_in_days"]


@pytest.mark.parametrize("missing", ["organization_id", "project_id", "scopes"])
async def test_every_other_member_is_required(tenant: Tenant, missing: str) -> None:
    body = tenant.key_body()
    del body[missing]
    assert pointers(await tenant.api.post("/v1/api-keys", json=body)) == [f"/{missing}"]


@pytest.mark.parametrize("member", ["id", "secret", "expires_at"])
async def test_an_unknown_member_is_refused(tenant: Tenant, member: str) -> None:
    """A caller cannot choose the secret."""
    assert pointers(await create(tenant, **{member: "xak_" + "A" * 43})) == [f"/{member}"]


@pytest.mark.parametrize("project_id", [None, 1, ["prj_1"], "x" * 161], ids=repr)
async def test_exactly_one_project_is_named(tenant: Tenant, project_id: Any) -> None:
    (pointer,) = set(pointers(await create(tenant, project_id=project_id)))
    assert pointer.startswith("/project_id")


@pytest.mark.parametrize("project_id", ["", "prj_" + "A" * 22, "prj_\0", "x"], ids=repr)
async def test_an_unknown_project_is_not_found(tenant: Tenant, project_id: str) -> None:
    answer = await create(tenant, project_id=project_id)
    assert (answer.status, answer.code) == (404, "project_not_found")


async def test_a_project_of_another_organisation_is_not_found(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Both organisations belong to the caller."""
    other = await make_tenant(api)
    answer = await create(tenant, project_id=other.project_id)
    assert (answer.status, answer.code) == (404, "project_not_found")
    assert await rival.rows("SELECT 1 FROM api_keys") == []


async def test_the_log_names_the_creator_and_not_the_secret(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key(expires_in_days=7)
    metadata = {"api_key_id": key["id"], "scopes": ["codes:read", "codes:write"], "expires_in_days": 7}
    assert await rival.audited("api_key.created") == [("user operator", tenant.project_id, metadata)]


async def test_a_project_deleted_during_the_wait_is_not_found(tenant: Tenant, rival: Rival) -> None:
    async with rival.committing("DELETE FROM projects"):
        creating = await rival.while_waiting(create(tenant))
    assert ((await creating).status, (await creating).code) == (404, "project_not_found")


async def test_two_at_once_are_two_keys(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("SELECT 1 FROM projects FOR UPDATE"):
        creating = [asyncio.create_task(create(tenant)) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert {(await answer).status for answer in creating} == {201}
    assert len({(await answer).json["id"] for answer in creating}) == 2


@pytest.mark.parametrize("table", ["api_keys", "api_key_digests", "audit_entries"])
async def test_a_creation_cut_before_its_commit_leaves_nothing(tenant: Tenant, rival: Rival, table: str) -> None:
    async with rival.holding(f"LOCK TABLE {table} IN SHARE MODE"):
        creating = await rival.while_waiting(create(tenant))
        await rival.kill_waiting_sessions()
        answer = await creating
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await rival.rows("SELECT 1 FROM api_keys UNION ALL SELECT 1 FROM api_key_digests") == []
    assert await rival.audited("api_key.created") == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE members SET role = 'member'", "forbidden"),
        ("DELETE FROM members", "organization_not_found"),
    ],
)
async def test_a_caller_who_is_demoted_meanwhile_makes_no_key(
    tenant: Tenant, rival: Rival, statement: str, code: str
) -> None:
    async with rival.committing(statement):
        creating = await rival.while_waiting(create(tenant))
    assert (await creating).code == code
    assert await rival.rows("SELECT 1 FROM api_keys") == []
