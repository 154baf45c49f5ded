"""Codes whose audience is measured: checked before they are issued, with a new proof in each resolution."""

import asyncio
import hashlib
import hmac
import json
import re
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from soundmark_sdk import read_key_set, verify_answer
from support.api.core_client import Answer, Api
from support.audience.faults import KINDS, core_beside, failing_audience
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

KEY = {"Idempotency-Key": "measured-once-and-no-more"}


def measured_by(integration_id: str) -> dict[str, Any]:
    return {"audience": {"enabled": True, "integration_id": integration_id}}


async def issue(tenant: Tenant, integration_id: str, **options: Any) -> Answer:
    body = tenant.code_body(**measured_by(integration_id), **options.pop("changes", {}))
    return await tenant.api.post("/v1/codes", json=body, **options)


@pytest.fixture
async def integration_id(tenant: Tenant) -> str:
    """The id of an integration."""
    return str((await tenant.make_integration())["id"])


async def verified(api: Api, answer: Answer, token: str) -> Any:
    """Return the resolution as a receiver verifies it with the SDK."""
    keys = read_key_set((await api.get("/v1/keys")).body)
    return verify_answer(answer.body, token, keys, api.clock.now())


async def test_a_code_names_the_integration_that_measures_it(tenant: Tenant, integration_id: str) -> None:
    answer = await issue(tenant, integration_id)
    assert answer.status == 201
    code = answer.json
    policy = {"audience_measurement": True, "audience_integration_id": integration_id}
    assert (code["audience_enabled"], code["audience_integration_id"]) == (True, integration_id)
    assert code["signed_code"]["policy"] == policy
    read = await tenant.api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)
    assert (read.status, read.json) == (200, code)
    (listed,) = (await tenant.api.get("/v1/codes", params=tenant.query)).json["data"]
    assert (listed["audience_enabled"], listed["audience_integration_id"]) == (True, integration_id)


@pytest.mark.parametrize("proof", [True, False])
async def test_a_resolution_carries_a_measurement_proof(
    api: Api, tenant: Tenant, integration_id: str, proof: bool
) -> None:
    now = api.clock.freeze()
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"], **measured_by(integration_id))
    answer = await api.other(token=None).resolve(code["broadcast_token"], proof=proof)
    assert answer.status == 200
    measurement = answer.json["measurement_proof"]
    assert re.fullmatch(r"prf_[A-Za-z0-9_-]{22}", measurement["proof_id"])
    assert measurement == {
        "proof_id": measurement["proof_id"],
        "xr_id": code["xr_id"],
        "integration_id": integration_id,
        "campaign_id": campaign["id"],
        "issued_at": format_timestamp(now),
        "expires_at": format_timestamp(now + timedelta(minutes=5)),
        "key_id": code["signed_code"]["key_id"],
        "signature": measurement["signature"],
    }
    assert answer.json["policy"] == {"audience_measurement": True, "audience_integration_id": integration_id}
    assert ("resolution_proof" in answer.json) == proof
    if proof:
        resolution = await verified(api, answer, code["broadcast_token"])
        assert resolution.measurement_proof.proof_id == measurement["proof_id"]


async def test_a_code_without_a_campaign_has_null_in_its_proof(api: Api, tenant: Tenant, integration_id: str) -> None:
    code = await tenant.make_code(**measured_by(integration_id))
    answer = await api.resolve(code["broadcast_token"])
    assert answer.json["measurement_proof"]["campaign_id"] is None
    assert (await verified(api, answer, code["broadcast_token"])).measurement_proof is not None


async def test_a_code_that_is_not_measured_has_no_proof(api: Api, tenant: Tenant) -> None:
    code = await tenant.make_code()
    answer = await api.resolve(code["broadcast_token"])
    assert "measurement_proof" not in answer.json
    assert (await verified(api, answer, code["broadcast_token"])).measurement_proof is None


async def test_concurrent_resolutions_each_have_their_own_proof(api: Api, tenant: Tenant, integration_id: str) -> None:
    """A proof counts once, so it is not shared as an envelope may be, not even with a request for no envelope."""
    measured = await tenant.make_code(**measured_by(integration_id))
    other = await tenant.make_code()
    tokens = [measured["broadcast_token"]] * 40 + [other["broadcast_token"]] * 5
    answers = await asyncio.gather(*(api.resolve(token, proof=bool(at % 3)) for at, token in enumerate(tokens)))
    assert {answer.status for answer in answers} == {200}
    proofs = [answer.json["measurement_proof"]["proof_id"] for answer in answers[:40]]
    assert len(set(proofs)) == 40
    assert not any("measurement_proof" in answer.json for answer in answers[40:])
    for answer, token in zip(answers, tokens, strict=True):
        if "resolution_proof" in answer.json:
            await verified(api, answer, token)


async def test_revocation_and_expiry_hold_for_measured_codes(api: Api, tenant: Tenant, integration_id: str) -> None:
    revoked = await tenant.make_code(**measured_by(integration_id))
    expired = await tenant.make_code(lifetime_s=60, **measured_by(integration_id))
    await tenant.revoke(revoked["xr_id"])
    api.clock.advance(seconds=61)
    assert (await api.resolve(revoked["broadcast_token"])).code == "code_unavailable"
    assert (await api.resolve(expired["broadcast_token"])).code == "code_expired"


async def test_a_batch_is_measured_alike(api: Api, tenant: Tenant, integration_id: str) -> None:
    body = {**tenant.code_body(**measured_by(integration_id)), "count": 3}
    answer = await api.post("/v1/codes/batch", json=body)
    assert {code["audience_integration_id"] for code in answer.json["data"]} == {integration_id}
    tokens = [code["broadcast_token"] for code in answer.json["data"]]
    answers = await asyncio.gather(*map(api.resolve, tokens))
    assert len({each.json["measurement_proof"]["proof_id"] for each in answers}) == 3


@pytest.mark.parametrize("path", ["/v1/codes", "/v1/codes/batch"])
@pytest.mark.parametrize("dry_run", [False, True])
async def test_an_integration_that_may_not_measure_issues_nothing(
    api: Api, tenant: Tenant, rival: Rival, path: str, dry_run: bool
) -> None:
    """Unknown, of another project or another organisation: the same answer. Revoked: reported to its own project."""
    revoked = (await tenant.make_integration())["id"]
    await tenant.change_integration("revoke", revoked)
    sibling = Tenant(api, tenant.organization_id, await api.make_project(tenant.organization_id, "Evening show"))
    stranger = await make_tenant(api)
    expected = {
        "int_" + "A" * 22: (404, "integration_not_found"),
        (await sibling.make_integration())["id"]: (404, "integration_not_found"),
        (await stranger.make_integration())["id"]: (404, "integration_not_found"),
        revoked: (409, "integration_revoked"),
    }
    for integration_id, (status, code) in expected.items():
        body = tenant.code_body(**measured_by(integration_id)) | ({"count": 2} if "batch" in path else {})
        answer = await api.post(path, json=body, params={"dry_run": "true"} if dry_run else {})
        if dry_run:
            assert (answer.status, answer.json["would_issue"], answer.json["code"]) == (200, False, code)
        else:
            assert (answer.status, answer.code) == (status, code)
    assert await rival.rows("SELECT FROM codes") == []
    assert await rival.rows("SELECT FROM code_usage_days") == []


async def test_a_dry_run_of_one_that_may_would_issue(tenant: Tenant, integration_id: str) -> None:
    answer = await issue(tenant, integration_id, params={"dry_run": "true"})
    assert (answer.status, answer.json["would_issue"], answer.json["code"]) == (200, True, None)


async def test_other_faults_of_a_request_are_reported_first(tenant: Tenant) -> None:
    """A missing campaign is reported before a missing integration."""
    answer = await issue(tenant, "int_" + "A" * 22, changes={"campaign_id": "cmp_" + "A" * 22})
    assert (answer.status, answer.code) == (404, "campaign_not_found")


async def test_a_revocation_of_the_integration_leaves_its_codes(api: Api, tenant: Tenant, integration_id: str) -> None:
    """Their signatures still hold; Audience refuses their events."""
    code = await tenant.make_code(**measured_by(integration_id))
    await tenant.change_integration("revoke", integration_id)
    answer = await api.resolve(code["broadcast_token"])
    assert answer.json["measurement_proof"]["integration_id"] == integration_id


@pytest.mark.parametrize("fault", KINDS)
async def test_while_audience_fails_no_measured_code_is_issued_and_every_other_is(
    database_url: Secret, clock: FakeClock, rival: Rival, fault: str
) -> None:
    async with failing_audience(fault) as url, core_beside(url, database_url, clock) as api, asyncio.timeout(30):
        tenant = await make_tenant(api)
        await tenant.give_cell(rival)
        refused, verdict, other = await asyncio.gather(
            issue(tenant, "int_" + "A" * 22, headers=KEY),
            issue(tenant, "int_" + "A" * 22, params={"dry_run": "true"}),
            api.post("/v1/codes", json=tenant.code_body()),
        )
        assert (refused.status, refused.code) == (503, "audience_unavailable")
        assert (verdict.status, verdict.json["code"]) == (200, "audience_unavailable")
        assert other.status == 201
        assert await rival.rows("SELECT count(*) FROM codes") == [(1,)]
        assert await rival.rows("SELECT FROM issuance_receipts") == []


async def test_a_repeated_issuance_is_answered_without_calling_audience(
    database_url: Secret, measuring_url: str, clock: FakeClock
) -> None:
    """Also after the integration was revoked, or while Audience is silent."""
    async with core_beside(measuring_url, database_url, clock) as api:
        tenant = await make_tenant(api)
        integration = await tenant.make_integration()
        body = tenant.code_body(**measured_by(integration["id"]))
        first = await api.post("/v1/codes", json=body, headers=KEY)
        assert first.status == 201
    async with failing_audience("slow") as url, core_beside(url, database_url, clock) as api:
        async with asyncio.timeout(0.9):  # The deadline of a private call is a second.
            again = await api.post("/v1/codes", json=body, headers=KEY)
        assert (again.status, again.body) == (201, first.body)
        changed = {**body, "issuer": "Another"}
        conflict = await api.post("/v1/codes", json=changed, headers=KEY)
        assert (conflict.status, conflict.code) == (409, "idempotency_conflict")


async def test_the_summary_counts_measured_codes(tenant: Tenant, integration_id: str) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    await tenant.make_code(campaign_id=campaign["id"], **measured_by(integration_id))
    summary = await tenant.api.get(f"/v1/campaigns/{campaign['id']}/summary", params=tenant.query)
    assert summary.json["counts"]["audience_enabled"] == 1


async def test_an_event_made_from_a_resolution_is_recorded_once(
    api: Api, tenant: Tenant, measuring_url: str, measuring: Rival
) -> None:
    """From issuance to Audience's database, through both components."""
    integration = await tenant.make_integration()
    code = await tenant.make_code(**measured_by(integration["id"]))
    resolution = (await api.resolve(code["broadcast_token"])).json
    event = {
        "event_id": "evt_" + "A" * 22,
        "integration_id": integration["id"],
        "xr_id": code["xr_id"],
        "occurred_at": format_timestamp(api.clock.now()),
        "receiver_class": "phone",
        "measurement_token": "mt_" + "A" * 43,
        "country": "DE",
        "proof": resolution["measurement_proof"],
    }
    body = json.dumps(event).encode()
    signature = hmac.new(integration["hmac_secret"].encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Svc-Signature": f"sha256={signature}", "Content-Type": "application/json"}
    async with httpx2.AsyncClient(trust_env=False) as client:
        seen = []
        for _ in range(2):
            answer = await client.post(f"{measuring_url}/v1/events", content=body, headers=headers)
            seen.append((answer.status_code, answer.json()["status"]))
    assert seen == [(201, "recorded"), (200, "duplicate")]
    assert await measuring.rows("SELECT count(*) FROM events") == [(1,)]
