"""Issuances of one organisation that wait at the same time share a transaction, and each is answered as if alone."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from support.api.core_client import Answer, Api
from support.codes.issuance_queue import IssuanceQueue
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import INTENT, Tenant, make_tenant

from soundmark.core.features.codes.issuance import issue_group
from soundmark.kit.postgres.pipelined_tx import PipelinedTx

KEY = {"Idempotency-Key": "playout-2026-11-21~T18.00_a"}


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> IssuanceQueue:
    """The queue of requests to issue, whose turns the test decides."""
    return IssuanceQueue(monkeypatch)


async def together(
    rival: Rival, queue: IssuanceQueue, first: Tenant, requests: Sequence[tuple[Api, dict[str, Any], dict[str, str]]]
) -> list[Answer]:
    """Return the answers to requests that are made in this order while one issuance of the tenant waits."""
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        waiting = await rival.while_waiting(first.api.post("/v1/codes", json=first.code_body(issuer="The first")))
        tasks, before = [], queue.entered_count
        for number, (api, body, headers) in enumerate(requests, start=1):
            path = "/v1/codes/batch" if "count" in body else "/v1/codes"
            tasks.append(asyncio.create_task(api.post(path, json=body, headers=headers)))
            await queue.until_entered(before + number)
    assert (await waiting).status == 201
    return [await task for task in tasks]


async def commits(rival: Rival) -> int:
    """Return how many transactions have issued Codes."""
    return len(await rival.rows("SELECT DISTINCT xmin::text FROM codes"))


async def test_requests_that_wait_share_one_commit_and_each_gets_its_own_code(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue
) -> None:
    campaign = await tenant.make_campaign()
    bodies = [
        tenant.code_body(issuer="Radio Nordlicht", expires_at="2027-01-01T00:00:00.000Z"),
        tenant.code_body(issuer="Radio Südlicht", campaign_id=campaign["id"], intent=INTENT | {"action": "other"}),
        tenant.code_body(issuer="Radio Ostlicht", count=2),
    ]
    answers = await together(rival, queue, tenant, [(tenant.api, body, {}) for body in bodies])

    assert await commits(rival) == 2
    for answer, body in zip(answers, bodies, strict=True):
        assert answer.status == 201
        for code in answer.json.get("data", [answer.json]):
            signed = code["signed_code"]
            for member in ("issuer", "project_id", "intent", "campaign_id"):
                assert signed[member] == body.get(member), member
            read = await tenant.api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)
            assert (read.json["issuer"], read.json["campaign_id"]) == (body["issuer"], body.get("campaign_id"))
            assert (await tenant.api.get(f"/v1/resolve/{code['broadcast_token']}")).status == 200
    tokens = [code["broadcast_token"] for answer in answers for code in answer.json.get("data", [answer.json])]
    assert len(set(tokens)) == 4
    assert await rival.rows("SELECT issued_count FROM code_usage_days") == [(5,)]
    assert len(await rival.audited("code.issued")) == 3
    ((_, _, metadata),) = await rival.audited("code.batch_issued")
    assert metadata == {"xr_ids": [code["xr_id"] for code in answers[2].json["data"]]}


async def test_one_refused_request_does_not_affect_the_others(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue
) -> None:
    archived = await tenant.make_campaign(name="Over")
    await tenant.api.post(f"/v1/campaigns/{archived['id']}/archive", params=tenant.query)
    other = await make_tenant(tenant.api)
    good = tenant.code_body()
    refused = {
        "project_not_found": good | {"project_id": other.project_id},
        "campaign_archived": good | {"campaign_id": archived["id"]},
        "campaign_not_found": good | {"campaign_id": "cmp_" + "0" * 32},
        "validation_failed": good | {"expires_at": "2026-01-01T00:00:00Z"},
        "quota_exceeded": good | {"count": 100},
    }
    bodies = [good, *refused.values(), good]
    answers = await together(rival, queue, tenant, [(tenant.api, body, {}) for body in bodies])

    assert [answers[0].status, answers[-1].status] == [201, 201]
    assert [answer.code for answer in answers[1:-1]] == list(refused)
    assert await commits(rival) == 2
    assert len(await rival.rows("SELECT 1 FROM codes")) == 3


async def test_a_malformed_idempotency_key_is_refused_beside_others(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue
) -> None:
    good = tenant.code_body()
    answers = await together(
        rival, queue, tenant, [(tenant.api, good, {"Idempotency-Key": "short"}), (tenant.api, good, KEY)]
    )
    assert [answer.status for answer in answers] == [422, 201]


async def test_one_idempotency_key_in_one_batch_issues_once(tenant: Tenant, rival: Rival, queue: IssuanceQueue) -> None:
    same, another = tenant.code_body(), tenant.code_body(issuer="Somebody else")
    answers = await together(
        rival, queue, tenant, [(tenant.api, same, KEY), (tenant.api, same, KEY), (tenant.api, another, KEY)]
    )
    assert [answer.status for answer in answers] == [201, 201, 409]
    assert answers[0].body == answers[1].body
    assert answers[2].code == "idempotency_conflict"
    assert await rival.rows("SELECT issued_count FROM code_usage_days") == [(2,)]
    repeated = await tenant.api.post("/v1/codes", json=same, headers=KEY)
    assert repeated.body == answers[0].body


async def test_the_rest_of_a_quota_goes_to_the_first_requests(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue
) -> None:
    await tenant.make_quota(rival, 4)
    good = tenant.code_body()
    bodies = [good, good | {"count": 3}, good, good, good]
    answers = await together(rival, queue, tenant, [(tenant.api, body, {}) for body in bodies])
    assert [answer.status for answer in answers] == [201, 429, 201, 201, 429]
    assert [answer.headers["RateLimit"].split(";")[1] for answer in answers] == ["r=2", "r=2", "r=1", "r=0", "r=0"]
    assert await rival.rows("SELECT issued_count FROM code_usage_days") == [(4,)]


async def test_a_key_that_is_revoked_while_its_requests_wait_is_refused_alone(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue
) -> None:
    key = await tenant.make_key(scopes=["codes:write"])
    caller = tenant.api.other(token=key["secret"])
    good = tenant.code_body()
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        waiting = await rival.while_waiting(tenant.api.post("/v1/codes", json=good))
        requests = [asyncio.create_task(api.post("/v1/codes", json=good)) for api in (caller, caller, tenant.api)]
        await queue.until_entered(4)
        await rival.run("UPDATE api_keys SET revoked_at = now()")
    answers = [await task for task in (waiting, *requests)]
    assert [answer.status for answer in answers] == [201, 401, 401, 201]
    assert len(await rival.rows("SELECT 1 FROM codes")) == 2


async def test_a_person_who_is_demoted_while_they_wait_is_refused_alone(
    people: People, rival: Rival, queue: IssuanceQueue
) -> None:
    owner = await people.tenant_of("owner")
    admin = await people.member(owner, rival, "admin", "admin")
    good = owner.code_body()
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        waiting = await rival.while_waiting(owner.api.post("/v1/codes", json=good))
        requests = [asyncio.create_task(api.post("/v1/codes", json=good)) for api in (admin.api, owner.api)]
        await queue.until_entered(3)
        await rival.run("UPDATE members SET role = 'billing' WHERE role = 'admin'")
    answers = [await task for task in (waiting, *requests)]
    assert [answer.status for answer in answers] == [201, 403, 201]


async def test_a_request_that_the_database_refuses_fails_alone(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example a request whose token already exists."""
    taken = (await tenant.make_code())["broadcast_token"]
    true_sign = issue_group._GroupEvaluation._sign

    def sign(sitting: Any, requests: Any) -> Any:
        issued = true_sign(sitting, requests)
        return (
            [replace(code, broadcast_token=taken) for code in issued] if requests.request.issuer == "Cursed" else issued
        )

    monkeypatch.setattr(issue_group._GroupEvaluation, "_sign", sign)
    good = tenant.code_body()
    requests = [(tenant.api, good, {}), (tenant.api, good | {"issuer": "Cursed"}, KEY), (tenant.api, good, {})]
    answers = await together(rival, queue, tenant, requests)
    assert [answer.status for answer in answers] == [201, 500, 201]
    assert await rival.rows("SELECT issued_count FROM code_usage_days") == [(4,)]
    assert len(await rival.rows("SELECT 1 FROM codes")) == 4
    assert await rival.rows("SELECT 1 FROM issuance_receipts") == []


async def test_a_lost_connection_undoes_the_batch_and_the_next_batch_is_issued(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue
) -> None:
    good = tenant.code_body()
    async with rival.holding("LOCK TABLE issuance_receipts IN SHARE MODE"):
        async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
            first = await rival.while_waiting(tenant.api.post("/v1/codes", json=good))
            group = [asyncio.create_task(tenant.api.post("/v1/codes", json=good, headers=KEY)) for _ in range(2)]
            await queue.until_entered(3)
        assert (await first).status == 201
        await rival.until_someone_waits()  # The batch has written everything but its receipt.
        late = asyncio.create_task(tenant.api.post("/v1/codes", json=good))
        await queue.until_entered(4)
        await rival.kill_waiting_sessions()
        died = [await task for task in group]
    assert [(answer.status, answer.code) for answer in died] == [(503, "database_unavailable")] * 2
    assert (await late).status == 201
    assert len(await rival.rows("SELECT 1 FROM codes")) == 2
    assert await rival.rows("SELECT issued_count FROM code_usage_days") == [(2,)]
    assert (await tenant.api.post("/v1/codes", json=good, headers=KEY)).status == 201


async def test_a_commit_whose_answer_is_lost_is_reported_to_all_and_not_repeated(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process or its connection dies just after the commit; a repetition gets the issued Codes."""
    true_ending = PipelinedTx.ending

    @contextlib.asynccontextmanager
    async def ending(tx: PipelinedTx) -> AsyncIterator[None]:
        async with true_ending(tx):
            yield
        if await commits(rival) == 2:
            raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(PipelinedTx, "ending", ending)
    good = tenant.code_body()
    lost = await together(rival, queue, tenant, [(tenant.api, good, KEY), (tenant.api, good, {})])
    assert [(answer.status, answer.code) for answer in lost] == [(503, "database_unavailable")] * 2
    assert await rival.rows("SELECT issued_count FROM code_usage_days") == [(3,)]

    again = await tenant.api.post("/v1/codes", json=good, headers=KEY)
    recovered = await tenant.api.post("/v1/codes/recover", json=good, headers=KEY)
    assert (again.status, recovered.status, recovered.body) == (201, 200, again.body)
    assert len(await rival.rows("SELECT 1 FROM codes")) == 3


async def test_a_caller_who_hangs_up_before_their_batch_gets_nothing_issued(
    tenant: Tenant, rival: Rival, queue: IssuanceQueue
) -> None:
    good = tenant.code_body()
    async with rival.holding("SELECT 1 FROM code_entitlements FOR UPDATE"):
        first = await rival.while_waiting(tenant.api.post("/v1/codes", json=good))
        leaving, staying = (asyncio.create_task(tenant.api.post("/v1/codes", json=good)) for _ in range(2))
        await queue.until_entered(3)
        leaving.cancel()
        await asyncio.wait([leaving])
    assert [(await task).status for task in (first, staying)] == [201, 201]
    assert len(await rival.rows("SELECT 1 FROM codes")) == 2


async def test_organisations_do_not_wait_for_each_other(tenant: Tenant, rival: Rival) -> None:
    other = await make_tenant(tenant.api)
    held = "SELECT 1 FROM code_entitlements WHERE organization_id = %s FOR UPDATE"
    async with rival.holding(held, tenant.organization_id):
        waiting = await rival.while_waiting(tenant.api.post("/v1/codes", json=tenant.code_body()))
        assert (await tenant.api.post("/v1/codes", json=other.code_body())).status == 201
    assert (await waiting).status == 201
