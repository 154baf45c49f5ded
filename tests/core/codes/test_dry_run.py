"""`?dry_run=true`: the answer that an issuance would get now, without leaving a trace."""

import json
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

PATHS = {"single": "/v1/codes", "batch": "/v1/codes/batch"}


@pytest.fixture(params=PATHS)
def route(request: pytest.FixtureRequest) -> str:
    """The route of single Codes, then that of batches."""
    name: str = request.param
    return name


async def ask(tenant: Tenant, route: str = "single", **changes: Any) -> Answer:
    body = tenant.code_body(**({"count": 2} if route == "batch" else {})) | changes
    return await tenant.api.post(PATHS[route], params={"dry_run": "true"}, json=body)


def verdict(answer: Answer) -> tuple[bool, str | None]:
    assert answer.status == 200, answer.body
    return answer.json["would_issue"], answer.json["code"]


async def test_an_issuance_that_would_succeed(tenant: Tenant, route: str) -> None:
    answer = await ask(tenant, route)
    assert answer.json == {"would_issue": True, "code": None, "quota_remaining": 100}
    assert answer.status == 200


async def test_it_leaves_no_trace(tenant: Tenant, rival: Rival, route: str) -> None:
    tables = ("codes", "broadcasts", "code_usage_days", "issuance_receipts", "audit_entries", "code_entitlements")
    before = [sorted(await rival.rows(f"SELECT t::text, xmin::text FROM {table} t")) for table in tables]
    await ask(tenant, route)
    assert [sorted(await rival.rows(f"SELECT t::text, xmin::text FROM {table} t")) for table in tables] == before


async def test_it_waits_for_no_lock(tenant: Tenant, rival: Rival, route: str) -> None:
    async with rival.holding("SELECT 1 FROM code_entitlements, projects FOR UPDATE"):
        assert verdict(await ask(tenant, route)) == (True, None)


async def test_a_quota_that_does_not_suffice(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_quota(rival, 1)
    assert (await ask(tenant)).json == {"would_issue": True, "code": None, "quota_remaining": 1}
    assert (await ask(tenant, "batch")).json == {"would_issue": False, "code": "quota_exceeded", "quota_remaining": 1}


async def test_an_expiry_in_the_past(tenant: Tenant, route: str) -> None:
    now = tenant.api.clock.freeze()
    assert verdict(await ask(tenant, route, expires_at=format_timestamp(now))) == (False, "validation_failed")


@pytest.mark.parametrize(
    "resource",
    [{"n": 2**53}, {"text": "x" * 17_000}],
    ids=["an integer", "size"],
)
async def test_an_intent_without_a_canonical_form(tenant: Tenant, route: str, resource: Any) -> None:
    body = tenant.code_body(**({"count": 2} if route == "batch" else {}))
    body["intent"] = {"type": "link", "action": "open", "resource": {}}
    text = json.dumps(body).replace('"resource": {}', f'"resource": {_json(resource)}')
    answer = await tenant.api.post(
        PATHS[route], params={"dry_run": "true"}, content=text.encode(), headers={"content-type": "application/json"}
    )
    assert verdict(answer) == (False, "intent_not_canonical")


async def test_an_integration_that_is_not_there(tenant: Tenant) -> None:
    audience = {"enabled": True, "integration_id": "int_" + "A" * 22}
    assert verdict(await ask(tenant, audience=audience)) == (False, "integration_not_found")


async def test_the_states_of_a_campaign(tenant: Tenant, api: Api, route: str) -> None:
    now = api.clock.freeze()
    later = await tenant.make_campaign("Later", starts_at=format_timestamp(now + timedelta(seconds=1)))
    over = await tenant.make_campaign("Over", ends_at=format_timestamp(now))
    running = await tenant.make_campaign("Running", starts_at=format_timestamp(now))
    archived = await tenant.make_campaign("Archived")
    await api.post(f"/v1/campaigns/{archived['id']}/archive", params=tenant.query)
    expected = {
        later["id"]: (False, "campaign_not_open"),
        over["id"]: (False, "campaign_not_open"),
        running["id"]: (True, None),
        archived["id"]: (False, "campaign_archived"),
        "cmp_" + "A" * 22: (False, "campaign_not_found"),
        "nonsense": (False, "campaign_not_found"),
    }
    found = {campaign_id: verdict(await ask(tenant, route, campaign_id=campaign_id)) for campaign_id in expected}
    assert found == expected


async def test_an_idempotency_key_is_refused(tenant: Tenant, rival: Rival, route: str) -> None:
    body = tenant.code_body(**({"count": 2} if route == "batch" else {}))
    answer = await tenant.api.post(
        PATHS[route], params={"dry_run": "true"}, json=body, headers={"Idempotency-Key": "a" * 16}
    )
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/Idempotency-Key"]
    assert await rival.rows("SELECT 1 FROM issuance_receipts") == []


async def test_a_caller_who_may_not_issue_gets_no_verdict(tenant: Tenant, api: Api, route: str) -> None:
    assert (await ask(tenant, route, project_id="prj_" + "A" * 22)).code == "project_not_found"
    reader = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    assert (await ask(reader, route)).code == "insufficient_scope"
    other = await make_tenant(api)
    stranger = other.with_key(await other.make_key())
    assert (await ask(stranger, route, organization_id=tenant.organization_id)).code == "organization_not_found"


async def test_a_body_of_another_shape_is_refused(tenant: Tenant, route: str) -> None:
    assert (await ask(tenant, route, issuer="")).code == "validation_failed"


@pytest.mark.parametrize(("value", "status"), [("false", 201), ("maybe", 422)])
async def test_only_true_makes_it_a_dry_run(tenant: Tenant, value: str, status: int) -> None:
    answer = await tenant.api.post("/v1/codes", params={"dry_run": value}, json=tenant.code_body())
    assert answer.status == status


@pytest.mark.parametrize(
    ("path", "params"), [("/v1/codes", {"dry_run": "false"}), ("/v1/codes", {}), ("/v1/codes/recover", {})]
)
async def test_a_real_issuance_with_a_malformed_intent_gets_no_verdict(
    tenant: Tenant, path: str, params: dict[str, str]
) -> None:
    body = json.dumps(tenant.code_body(intent={"type": 2**53, "action": "open", "resource": {}}))
    key = {"idempotency-key": "of-an-intent-that-is-none"} if path.endswith("recover") else {}
    answer = await tenant.api.post(
        path, params=params, content=body.encode(), headers={"content-type": "application/json", **key}
    )
    assert (answer.status, answer.code) == (422, "intent_not_canonical")


def _json(value: Any) -> str:
    return json.dumps(value).replace("Infinity", "1e400")
