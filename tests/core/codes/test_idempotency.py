"""`Idempotency-Key`: an issuance happens once, and a repetition within a day gets the very same answer."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import ATTEMPTS
from soundmark.kit.text.timestamps import format_timestamp

KEY = "playout-2026-11-21~T18.00_a"
PATHS = {"single": "/v1/codes", "batch": "/v1/codes/batch"}


@pytest.fixture
async def elsewhere(tenant: Tenant, database_url: Secret) -> AsyncIterator[Tenant]:
    """The same tenant at another process of Core."""
    async with running_core(core_settings(database_url), tenant.api.clock) as api:
        yield replace(tenant, api=api)


@pytest.fixture(params=PATHS)
def route(request: pytest.FixtureRequest) -> str:
    """The route of single Codes, then that of batches."""
    name: str = request.param
    return name


def make_body(tenant: Tenant, route: str, **changes: Any) -> dict[str, Any]:
    expires_at = format_timestamp(tenant.api.clock.now() + timedelta(days=9))
    body = tenant.code_body(expires_at=expires_at, **changes)
    return body if route == "single" else body | {"count": 2}


async def send(tenant: Tenant, route: str, body: Any, key: str = KEY) -> Answer:
    return await tenant.api.post(PATHS[route], json=body, headers={"Idempotency-Key": key})


async def issued(rival: Rival) -> list[Any]:
    """Return the numbers of Codes, of counted Codes, and of issuances in the audit log."""
    (counted,) = await rival.rows("SELECT COALESCE(sum(issued_count), 0)::int FROM code_usage_days")
    entries = [*await rival.audited("code.issued"), *await rival.audited("code.batch_issued")]
    return [len(await rival.rows("SELECT 1 FROM codes")), counted[0], len(entries)]


async def test_a_repetition_is_answered_the_same_bytes_and_does_nothing(
    tenant: Tenant, rival: Rival, route: str
) -> None:
    body = make_body(tenant, route)
    first = await send(tenant, route, body)
    before = await issued(rival)
    again = await send(tenant, route, body)

    assert (first.status, again.status, again.body) == (201, 201, first.body)
    assert again.headers["content-type"] == first.headers["content-type"]
    assert await issued(rival) == before


async def test_the_spelling_of_a_request_makes_no_difference(tenant: Tenant, route: str) -> None:
    body = make_body(tenant, route)
    first = await send(tenant, route, body)
    rewritten = json.dumps(dict(reversed(body.items())), indent=2).encode()
    again = await tenant.api.post(
        PATHS[route], content=rewritten, headers={"Idempotency-Key": KEY, "content-type": "application/json"}
    )
    assert again.body == first.body


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "Radio Südlicht"},
        {"issuer": ""},
        {"unknown": 1},
        {"intent": {"type": "link", "action": "open", "resource": {"n": 2**53}}},
    ],
    ids=ascii,
)
async def test_a_key_belongs_to_one_request(tenant: Tenant, rival: Rival, route: str, changes: dict[str, Any]) -> None:
    """Even if the other request could not be carried out: its sender has mixed up two requests, and must know."""
    body = make_body(tenant, route)
    assert (await send(tenant, route, body)).status == 201
    before = await issued(rival)

    answer = await send(tenant, route, body | changes)

    assert (answer.status, answer.code) == (409, "idempotency_conflict")
    assert await issued(rival) == before


async def test_a_key_belongs_to_one_route(tenant: Tenant, rival: Rival) -> None:
    body = make_body(tenant, "single")
    assert (await send(tenant, "single", body)).status == 201
    before = await issued(rival)
    assert (await send(tenant, "batch", body | {"count": 1})).code == "idempotency_conflict"
    # A body that the other route cannot read is a conflict too.
    assert (await send(tenant, "batch", body)).code == "idempotency_conflict"
    assert await issued(rival) == before


@pytest.mark.parametrize("key", ["a" * 15, "a" * 16 + " b"])
async def test_a_malformed_key_is_refused(tenant: Tenant, rival: Rival, route: str, key: str) -> None:
    header = [(b"Idempotency-Key", key.encode())]
    answer = await tenant.api.call("POST", PATHS[route], json=make_body(tenant, route), headers=header)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [
        ("header", "/Idempotency-Key")
    ]
    assert await issued(rival) == [0, 0, 0]


async def test_the_project_is_judged_before_the_key(tenant: Tenant) -> None:
    answer = await send(tenant, "single", make_body(tenant, "single", project_id="prj_" + "A" * 22), "no key")
    assert (answer.status, answer.code) == (404, "project_not_found")


async def test_a_receipt_is_kept_for_a_day(tenant: Tenant, rival: Rival, route: str) -> None:
    tenant.api.clock.freeze()
    body = make_body(tenant, route)
    first = await send(tenant, route, body)
    tenant.api.clock.advance(hours=23, minutes=59, seconds=59, milliseconds=999)
    assert (await send(tenant, route, body)).body == first.body

    tenant.api.clock.advance(milliseconds=1)
    second = await send(tenant, route, body)

    assert (second.status, second.body == first.body) == (201, False)
    assert (await send(tenant, route, body)).body == second.body
    assert len(await rival.rows("SELECT 1 FROM issuance_receipts")) == 1


async def test_after_a_day_the_key_is_free_for_another_request(tenant: Tenant) -> None:
    await send(tenant, "single", make_body(tenant, "single"))
    tenant.api.clock.advance(hours=24)
    assert (await send(tenant, "batch", make_body(tenant, "batch"))).status == 201


async def test_organisations_do_not_share_keys(tenant: Tenant, api: Api) -> None:
    other = await make_tenant(api)
    first = await send(tenant, "single", make_body(tenant, "single"))
    second = await send(other, "single", make_body(other, "single"))
    assert (first.status, second.status) == (201, 201)
    assert second.json["organization_id"] == other.organization_id


async def test_a_server_key_of_another_project_gets_no_answer_of_this_one(tenant: Tenant) -> None:
    body = make_body(tenant, "single")
    assert (await send(tenant, "single", body)).status == 201
    elsewhere = await tenant.api.make_project(tenant.organization_id, "Evening show")
    stranger = tenant.with_key(await tenant.make_key(project_id=elsewhere))
    answer = await send(stranger, "single", body)
    assert (answer.status, answer.code) == (404, "project_not_found")


async def test_two_at_once_issue_once_and_get_the_same_answer(
    tenant: Tenant, elsewhere: Tenant, rival: Rival, route: str
) -> None:
    body = make_body(tenant, route)
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        both = [asyncio.create_task(send(where, route, body)) for where in (tenant, elsewhere)]
        await rival.until_someone_waits(2)
    one, two = [await task for task in both]
    assert (one.status, two.status, one.body) == (201, 201, two.body)
    assert (await issued(rival))[2] == 1


async def test_two_requests_at_once_under_one_key_issue_once(tenant: Tenant, elsewhere: Tenant, rival: Rival) -> None:
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        both = [
            asyncio.create_task(send(where, "single", make_body(tenant, "single", issuer=issuer)))
            for where, issuer in ((tenant, "Radio Nordlicht"), (elsewhere, "Radio Südlicht"))
        ]
        await rival.until_someone_waits(2)
    answers = [await task for task in both]
    assert sorted(answer.status for answer in answers) == [201, 409]
    assert await issued(rival) == [1, 1, 1]


async def test_a_process_that_dies_before_the_commit_leaves_nothing_and_the_retry_issues(
    tenant: Tenant, rival: Rival, route: str
) -> None:
    body = make_body(tenant, route)
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        dying = await rival.while_waiting(send(tenant, route, body))
        for _ in range(ATTEMPTS):  # Nothing was changed, so another connection begins again.
            await rival.until_someone_waits()
            await rival.kill_waiting_sessions()
        died = await dying
    assert (died.status, died.code) == (503, "database_unavailable")
    assert await issued(rival) == [0, 0, 0]

    assert (await send(tenant, route, body)).status == 201
    assert (await issued(rival))[2] == 1


async def test_a_refusal_is_not_remembered(tenant: Tenant, rival: Rival, route: str) -> None:
    await tenant.make_quota(rival, 1)
    body = make_body(tenant, route)
    if route == "single":
        await tenant.make_code()
    assert (await send(tenant, route, body)).code == "quota_exceeded"
    await tenant.make_quota(rival, 5)
    assert (await send(tenant, route, body)).status == 201


async def test_a_used_up_quota_hides_no_answer(tenant: Tenant, rival: Rival, route: str) -> None:
    body = make_body(tenant, route)
    await tenant.make_quota(rival, 2)
    first = await send(tenant, route, body)
    await tenant.make_quota(rival, 0)
    again = await send(tenant, route, body)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["ratelimit"].startswith('"codes";r=0;')


async def test_an_expiry_that_passed_meanwhile_hides_no_answer(tenant: Tenant) -> None:
    body = tenant.code_body(expires_at=format_timestamp(tenant.api.clock.now() + timedelta(minutes=1)))
    first = await send(tenant, "single", body)
    tenant.api.clock.advance(minutes=2)
    assert (await send(tenant, "single", body)).body == first.body


async def test_a_retry_brings_no_revoked_code_back(tenant: Tenant, api: Api) -> None:
    """The answer is the original one, and its Codes stay revoked."""
    body = make_body(tenant, "single")
    first = await send(tenant, "single", body)
    await tenant.revoke(first.json["xr_id"])
    again = await send(tenant, "single", body)
    assert again.body == first.body
    assert (await api.resolve(again.json["broadcast_token"])).code == "code_unavailable"


async def test_a_retry_brings_no_stopped_campaign_back(tenant: Tenant, api: Api, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    body = make_body(tenant, "batch", campaign_id=campaign["id"])
    first = await send(tenant, "batch", body)
    assert (await api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)).json["revoked_count"] == 2
    before = await issued(rival)

    again = await send(tenant, "batch", body)
    fresh = await send(tenant, "batch", body, "another-key-of-16")

    assert again.body == first.body
    assert (fresh.status, fresh.code) == (409, "campaign_archived")
    assert await issued(rival) == before
    for code in again.json["data"]:
        assert (await api.resolve(code["broadcast_token"])).code == "code_unavailable"


async def test_neither_the_key_nor_the_request_is_stored(tenant: Tenant, rival: Rival) -> None:
    """A reader of the table learns no key that would reveal an answer."""
    body = make_body(tenant, "single")
    await send(tenant, "single", body)
    ((key_digest, request_digest, route),) = await rival.rows(
        "SELECT key_digest, request_digest, route FROM issuance_receipts"
    )
    assert key_digest == hashlib.sha256(KEY.encode()).digest()
    assert (len(request_digest), route) == (32, "single")
    everything = await rival.rows("SELECT r::text FROM issuance_receipts r")
    assert KEY not in str(everything)
