"""`POST /v1/codes`: what may be issued, what is returned, and that a refusal or a lost connection leaves nothing.

The intent has its own file: `test_issue_code_intent.py`.
"""

import asyncio
import json
import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from soundmark_sdk import read_key_set, verify_signed_code
from support.api.core_client import Answer, Api, pointers
from support.database.rival import Rival
from support.tenancy.tenant import INTENT, Tenant

from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.text.timestamps import format_timestamp


async def issue(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/codes", json=tenant.code_body(**changes))


async def stored(rival: Rival) -> int:
    """Return the numbers of Codes and broadcasts."""
    return len(await rival.rows("SELECT 1 FROM codes UNION ALL SELECT 1 FROM broadcasts"))


async def test_the_answer_is_the_whole_code(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    answer = await issue(tenant, expires_at=format_timestamp(now + timedelta(days=1)))
    assert answer.status == 201
    code = answer.json
    signed = code["signed_code"]
    facts = {
        "xr_id": code["xr_id"],
        "organization_id": tenant.organization_id,
        "project_id": tenant.project_id,
        "campaign_id": None,
        "issuer": "Radio Nordlicht",
        "issued_at": format_timestamp(now),
        "expires_at": format_timestamp(now + timedelta(days=1)),
        "intent": tenant.code_body()["intent"],
    }
    assert code == facts | {
        "broadcast_token": code["broadcast_token"],
        "broadcast_frame": f"XRC1:{code['broadcast_token']}",
        "status": "active",
        "revoked_at": None,
        "audience_enabled": False,
        "audience_integration_id": None,
        "signed_code": signed,
    }
    assert signed == facts | {
        "version": 1,
        "policy": {"audience_measurement": False, "audience_integration_id": None},
        "token_digest": signed["token_digest"],
        "key_id": signed["key_id"],
        "signature": signed["signature"],
    }
    assert re.fullmatch(r"xr_[A-Za-z0-9_-]{22}", code["xr_id"])
    assert re.fullmatch(r"brd_[A-Za-z0-9_-]{16}", code["broadcast_token"])


async def test_the_record_verifies_with_the_published_keys(api: Api, tenant: Tenant) -> None:
    code = await tenant.make_code()
    keys = read_key_set((await api.get("/v1/keys")).body)
    record = verify_signed_code(code["signed_code"], keys, token=code["broadcast_token"], now=api.clock.now())
    assert record.xr_id == code["xr_id"]


async def test_the_answer_equals_the_code_that_is_read_later(api: Api, tenant: Tenant) -> None:
    code = await tenant.make_code()
    assert (await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json == code


async def test_an_issued_code_can_be_resolved(api: Api, tenant: Tenant) -> None:
    code = await tenant.make_code()
    answer = await api.resolve(code["broadcast_token"])
    assert (answer.status, answer.json["xr_id"], answer.json["intent"]) == (200, code["xr_id"], code["intent"])


async def test_forty_at_once_are_forty_codes(tenant: Tenant, rival: Rival) -> None:
    codes = await asyncio.gather(*(tenant.make_code() for _ in range(40)))
    assert len({code["xr_id"] for code in codes}) == 40
    assert len({code["broadcast_token"] for code in codes}) == 40
    assert await stored(rival) == 80


@pytest.mark.parametrize("issuer", ["a", "😀" * 160], ids=ascii)
async def test_an_issuer_has_1_to_160_characters(tenant: Tenant, issuer: str) -> None:
    answer = await issue(tenant, issuer=issuer)
    assert (answer.status, answer.json["issuer"]) == (201, issuer)


@pytest.mark.parametrize("issuer", ["", "x" * 161, "a\nb", 1], ids=ascii)
async def test_another_issuer_is_refused(tenant: Tenant, rival: Rival, issuer: Any) -> None:
    assert pointers(await issue(tenant, issuer=issuer)) == ["/issuer"]
    assert await stored(rival) == 0


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"a/b~c": 1}, "/a~1b~0c"),
        ({"intent": INTENT | {"more": 1}}, "/intent/more"),
        ({"audience": {"enabled": False, "more": 1}}, "/audience/more"),
    ],
    ids=ascii,
)
async def test_an_unknown_member_is_refused(
    tenant: Tenant, rival: Rival, changes: dict[str, Any], pointer: str
) -> None:
    assert pointers(await issue(tenant, **changes)) == [pointer]
    assert await stored(rival) == 0


@pytest.mark.parametrize(
    ("expires_at", "read_as"),
    [
        ("2998-12-31T14:00:00.5-10:00", "2999-01-01T00:00:00.500Z"),
        ("2999-01-01T00:00:00.123456789Z", "2999-01-01T00:00:00.123Z"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
    ],
)
async def test_an_expiry_is_any_rfc_3339_time_and_is_returned_in_utc(
    tenant: Tenant, rival: Rival, expires_at: str, read_as: str
) -> None:
    answer = await issue(tenant, expires_at=expires_at)
    assert (answer.status, answer.json["expires_at"], answer.json["signed_code"]["expires_at"]) == (
        201,
        read_as,
        read_as,
    )
    assert [format_timestamp(at) for (at,) in await rival.rows("SELECT expires_at FROM codes")] == [read_as]


@pytest.mark.parametrize(
    "expires_at",
    ["2999-01-01T00:00:00", "9999-12-31T23:59:59.999-00:01", "", None, True],
    ids=ascii,
)
async def test_another_expiry_is_refused(tenant: Tenant, rival: Rival, expires_at: Any) -> None:
    assert pointers(await issue(tenant, expires_at=expires_at)) == ["/expires_at"]
    assert await stored(rival) == 0


@pytest.mark.parametrize("ahead_ms", [-1, 0])
async def test_an_expiry_lies_in_the_future(api: Api, tenant: Tenant, rival: Rival, ahead_ms: int) -> None:
    """An expiry exactly now is refused: such a Code would never be active."""
    now = api.clock.freeze()
    answer = await issue(tenant, expires_at=format_timestamp(now + timedelta(milliseconds=ahead_ms)))
    assert pointers(answer) == ["/expires_at"]
    assert await stored(rival) == 0


async def test_a_millisecond_ahead_is_the_future(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    assert (await issue(tenant, expires_at=format_timestamp(now + timedelta(milliseconds=1)))).status == 201


async def test_less_than_a_millisecond_ahead_counts_as_now(api: Api, tenant: Tenant) -> None:
    """The stored and signed time is cut to milliseconds, so that one is checked."""
    now = api.clock.freeze()
    assert pointers(await issue(tenant, expires_at=f"{now:%Y-%m-%dT%H:%M:%S}.000999Z")) == ["/expires_at"]


async def test_expiry_is_judged_after_the_wait_for_the_project(api: Api, tenant: Tenant, rival: Rival) -> None:
    """API v1, "Issuance ordering": the requested expiry is rechecked after any lock wait."""
    expires_at = format_timestamp(api.clock.freeze() + timedelta(seconds=60))
    async with rival.holding("SELECT 1 FROM projects WHERE id = %s FOR UPDATE", tenant.project_id):
        issuing = await rival.while_waiting(issue(tenant, expires_at=expires_at))
        api.clock.advance(seconds=60)
    assert pointers(await issuing) == ["/expires_at"]
    assert await stored(rival) == 0


async def test_a_project_deleted_during_the_issuance_leaves_nothing(tenant: Tenant, rival: Rival) -> None:
    """The deletion of the project wins; the insert that waits for it must not become an internal error."""
    async with rival.committing("DELETE FROM projects WHERE id = %s", tenant.project_id):
        issuing = await rival.while_waiting(issue(tenant))
    answer = await issuing
    assert (answer.status, answer.code) == (404, "project_not_found")
    assert await stored(rival) == 0


@pytest.mark.parametrize("campaign_id", ["cmp_" + "A" * 22, "cmp_\0"])
async def test_a_missing_campaign_is_not_found(tenant: Tenant, rival: Rival, campaign_id: str) -> None:
    answer = await issue(tenant, campaign_id=campaign_id)
    assert (answer.status, answer.code) == (404, "campaign_not_found")
    assert await stored(rival) == 0


@pytest.mark.parametrize("integration_id", ["int_" + "A" * 22, "int_\0"])
async def test_a_missing_integration_is_not_found(tenant: Tenant, rival: Rival, integration_id: str) -> None:
    answer = await issue(tenant, audience={"enabled": True, "integration_id": integration_id})
    assert (answer.status, answer.code) == (404, "integration_not_found")
    assert await stored(rival) == 0


@pytest.mark.parametrize(
    "changes",
    [{"audience": {"enabled": False, "integration_id": None}}, {"audience": None}, {"campaign_id": None}],
    ids=ascii,
)
async def test_null_is_the_same_as_a_missing_optional_member(tenant: Tenant, changes: dict[str, Any]) -> None:
    answer = await issue(tenant, **changes)
    assert (answer.status, answer.json["audience_enabled"], answer.json["campaign_id"]) == (201, False, None)


@pytest.mark.parametrize(
    ("audience", "pointer"),
    [
        ({"enabled": True}, "/audience"),
        ({"enabled": False, "integration_id": "int_" + "A" * 22}, "/audience"),
        ({}, "/audience/enabled"),
        ({"enabled": 1}, "/audience/enabled"),
        ({"enabled": True, "integration_id": 1}, "/audience/integration_id"),
        ([], "/audience"),
    ],
    ids=ascii,
)
async def test_another_audience_is_refused(tenant: Tenant, rival: Rival, audience: Any, pointer: str) -> None:
    assert pointers(await issue(tenant, audience=audience)) == [pointer]
    assert await stored(rival) == 0


async def test_all_faults_of_a_body_are_named_at_once(tenant: Tenant) -> None:
    answer = await issue(tenant, issuer="", expires_at="tomorrow", intent=INTENT | {"type": ""}, more=1)
    assert sorted(pointers(answer)) == ["/expires_at", "/intent/type", "/issuer", "/more"]


async def test_a_code_does_not_exist_before_its_commit(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Neither half exists: the broadcast is already written while the Code waits."""
    async with rival.holding("LOCK TABLE codes IN EXCLUSIVE MODE"):
        issuing = await rival.while_waiting(issue(tenant))
        assert await stored(rival) == 0
        assert (await api.get("/v1/codes", params=tenant.query)).json["data"] == []
    code = (await issuing).json
    assert (await api.resolve(code["broadcast_token"])).status == 200


async def test_a_code_is_stored_as_it_was_signed(tenant: Tenant, rival: Rival) -> None:
    """The payload is the canonical text of the record without its signature, and the intent is stored nowhere else."""
    code = await tenant.make_code()
    signed = dict(code["signed_code"])
    del signed["signature"]
    ((payload, issued_at, key_id),) = await rival.rows(
        "SELECT payload, issued_at, key_id FROM broadcasts JOIN codes ON broadcast_token = token"
    )
    assert json.loads(payload) == signed
    assert (payload, key_id) == (canonicalize(signed, depth_max=33, size_max_bytes=2**15), signed["key_id"])
    assert isinstance(issued_at, datetime)
    assert format_timestamp(issued_at) == signed["issued_at"]
