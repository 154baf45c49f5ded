"""`POST /v1/codes/recover` and `/v1/codes/batch/recover`: the answer of an issuance, for a caller who lost it."""

from typing import Any

import pytest
from support.api.core_client import Answer
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

KEY = "playout-2026-11-21"
PATHS = {"single": "/v1/codes", "batch": "/v1/codes/batch"}
OTHER = {"single": "batch", "batch": "single"}


@pytest.fixture(params=PATHS)
def route(request: pytest.FixtureRequest) -> str:
    """The route of single Codes, then that of batches."""
    name: str = request.param
    return name


def make_body(tenant: Tenant, route: str) -> dict[str, Any]:
    return tenant.code_body() if route == "single" else tenant.code_body(count=2)


async def issue(tenant: Tenant, route: str, body: Any) -> Answer:
    answer = await tenant.api.post(PATHS[route], json=body, headers={"Idempotency-Key": KEY})
    assert answer.status == 201, answer.body
    return answer


async def recover(tenant: Tenant, route: str, body: Any, key: str | None = KEY) -> Answer:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await tenant.api.post(f"{PATHS[route]}/recover", json=body, headers=headers)


async def everything(rival: Rival) -> list[Any]:
    tables = ("codes", "broadcasts", "code_usage_days", "issuance_receipts", "audit_entries")
    return [sorted(await rival.rows(f"SELECT t::text FROM {table} t")) for table in tables]


async def test_an_issuance_is_answered_again_and_nothing_changes(tenant: Tenant, rival: Rival, route: str) -> None:
    body = make_body(tenant, route)
    first = await issue(tenant, route, body)
    before = await everything(rival)
    recovered = [await recover(tenant, route, body) for _ in range(2)]
    assert [(answer.status, answer.body) for answer in recovered] == [(200, first.body)] * 2
    assert await everything(rival) == before


async def test_an_issuance_that_never_took_place_is_not_found(tenant: Tenant, rival: Rival, route: str) -> None:
    answer = await recover(tenant, route, make_body(tenant, route))
    assert (answer.status, answer.code) == (404, "code_issue_not_found")
    assert (await everything(rival))[:4] == [[], [], [], []]


async def test_after_a_day_nothing_is_remembered(tenant: Tenant, route: str) -> None:
    tenant.api.clock.freeze()
    body = make_body(tenant, route)
    first = await issue(tenant, route, body)
    tenant.api.clock.advance(hours=23, minutes=59, seconds=59, milliseconds=999)
    assert (await recover(tenant, route, body)).body == first.body
    tenant.api.clock.advance(milliseconds=1)
    assert (await recover(tenant, route, body)).code == "code_issue_not_found"


@pytest.mark.parametrize("changes", [{"issuer": "Radio Südlicht"}, {"more": 1}], ids=ascii)
async def test_another_body_is_a_conflict(tenant: Tenant, route: str, changes: dict[str, Any]) -> None:
    body = make_body(tenant, route)
    await issue(tenant, route, body)
    answer = await recover(tenant, route, body | changes)
    assert (answer.status, answer.code) == (409, "idempotency_conflict")


async def test_a_malformed_intent_was_never_issued(tenant: Tenant, route: str) -> None:
    body = make_body(tenant, route) | {"intent": {"type": 2**53, "action": "open", "resource": {}}}
    answer = await recover(tenant, route, body)
    assert (answer.status, answer.code) == (422, "intent_not_canonical")
    await issue(tenant, route, make_body(tenant, route))
    assert (await recover(tenant, route, body)).code == "idempotency_conflict"


async def test_the_other_route_is_a_conflict(tenant: Tenant, route: str) -> None:
    await issue(tenant, route, make_body(tenant, route))
    assert (await recover(tenant, OTHER[route], make_body(tenant, OTHER[route]))).code == "idempotency_conflict"


@pytest.mark.parametrize("key", [None, "short"])
async def test_a_key_is_required(tenant: Tenant, route: str, key: str | None) -> None:
    answer = await recover(tenant, route, make_body(tenant, route), key)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert {error["pointer"] for error in answer.json["errors"]} == {"/Idempotency-Key"}


async def test_a_body_that_could_never_have_been_issued_is_refused(tenant: Tenant, route: str) -> None:
    answer = await recover(tenant, route, make_body(tenant, route) | {"issuer": ""})
    assert (answer.status, answer.code) == (422, "validation_failed")


async def test_a_code_that_ended_meanwhile_is_recovered_as_it_was(tenant: Tenant) -> None:
    body = make_body(tenant, "single")
    first = await issue(tenant, "single", body)
    await tenant.revoke(first.json["xr_id"])
    assert (await recover(tenant, "single", body)).json["status"] == "active"


@pytest.mark.parametrize("key", [None, "short"])
async def test_organisation_and_project_are_judged_before_the_key_and_the_key_before_the_rest(
    tenant: Tenant, route: str, key: str | None
) -> None:
    """Contract, section 3. A caller who may not issue there learns nothing about the shape of a request."""

    async def seen(**changes: Any) -> tuple[int, str]:
        answer = await recover(tenant, route, {**make_body(tenant, route), **changes}, key)
        pointers = [error["pointer"] for error in answer.json.get("errors", ())]
        return answer.status, answer.code if answer.code != "validation_failed" else pointers[0]

    nowhere, no_intent = {"organization_id": "org_" + "A" * 22}, {"intent": {"type": 2**53}}
    assert await seen(**nowhere, issuer="", unknown=1) == (404, "organization_not_found")
    assert await seen(project_id="prj_" + "A" * 22, issuer="", unknown=1) == (404, "project_not_found")
    assert await seen() == (422, "/Idempotency-Key")
    assert await seen(**no_intent, unknown=1) == (422, "/Idempotency-Key")
