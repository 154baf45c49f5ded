"""`GET` and `PUT /v1/projects/{project_id}/allowed-hosts`, and what issuance makes of the list."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from support.api.core_client import Answer
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.people import People
from support.tenancy.tenant import INTENT, Tenant, make_second_project

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

ELSEWHERE = {**INTENT, "resource": {"url": "https://evil.example/"}}
POINTERS = [("body", "/intent/resource/url")]
KEY = {"Idempotency-Key": "k" * 16}


def path_of(tenant: Tenant) -> str:
    return f"/v1/projects/{tenant.project_id}/allowed-hosts"


async def put(tenant: Tenant, hosts: Any) -> Answer:
    return await tenant.api.put(path_of(tenant), params=tenant.query, json={"hosts": hosts})


async def read(tenant: Tenant) -> Any:
    answer = await tenant.api.get(path_of(tenant), params=tenant.query)
    assert answer.status == 200, answer.body
    return answer.json


async def issue(tenant: Tenant, *, headers: Any = None, **changes: Any) -> Answer:
    path = "/v1/codes/batch" if "count" in changes else "/v1/codes"
    return await tenant.api.post(path, json=tenant.code_body(**changes), headers=headers or {})


def assert_refused(answer: Answer) -> None:
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == POINTERS


async def test_a_list_is_kept_in_lower_case_and_in_its_order(tenant: Tenant, rival: Rival) -> None:
    """The same list again changes nothing; null allows everything again."""
    never = {"project_id": tenant.project_id, "hosts": None, "updated_at": None}
    assert await read(tenant) == never
    assert (await put(tenant, None)).json == never
    now = format_timestamp(tenant.api.clock.freeze())
    first = await put(tenant, ["Example.org", "*.A.example"])
    kept = {"project_id": tenant.project_id, "hosts": ["example.org", "*.a.example"], "updated_at": now}
    assert (first.status, first.json) == (200, kept)
    tenant.api.clock.advance(seconds=1)
    assert (await put(tenant, ["example.org", "*.a.example"])).json == kept == await read(tenant)
    later = format_timestamp(tenant.api.clock.now())
    assert (await put(tenant, None)).json == {**never, "updated_at": later}
    hosts = [facts["hosts"] for _, _, facts in await rival.audited("project.allowed_hosts_changed")]
    assert hosts == [["example.org", "*.a.example"], None]


@pytest.mark.parametrize(
    ("hosts", "pointer"),
    [
        (["a.example", "A.example"], "/hosts"),
        (["ok.example", "*.com"], "/hosts/1"),
        (["192.0.2.1"], "/hosts/0"),
        ([7], "/hosts/0"),
        ("example.org", "/hosts"),
        ([f"a{number}.example" for number in range(101)], "/hosts"),
    ],
)
async def test_a_malformed_list_is_refused(tenant: Tenant, hosts: Any, pointer: str) -> None:
    answer = await put(tenant, hosts)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == [pointer]
    assert (await read(tenant))["hosts"] is None


@pytest.mark.parametrize("body", [{}, {"hosts": [], "more": 1}, []])
async def test_the_body_is_a_closed_object(tenant: Tenant, body: Any) -> None:
    assert (await tenant.api.put(path_of(tenant), params=tenant.query, json=body)).status == 422


async def test_a_hundred_hosts_are_kept(tenant: Tenant) -> None:
    hosts = [f"a{number}.example" for number in range(100)]
    assert (await put(tenant, hosts)).json["hosts"] == hosts


async def test_administrators_with_a_second_factor_change_it_and_every_member_and_key_reads_it(
    people: People, rival: Rival
) -> None:
    owner = await people.tenant_of("olga")
    key = owner.with_key(await owner.make_key(scopes=["codes:read"]))
    other = await make_second_project(owner)
    elsewhere = owner.with_key(await other.make_key())
    weak = replace(owner, api=people.person("olga", acr="1", amr=[]))
    assert (await put(weak, [])).code == "mfa_required"
    assert (await put(key, [])).code == "user_token_required"
    assert (await read(key))["hosts"] is None
    assert (await elsewhere.api.get(path_of(owner), params=owner.query)).code == "project_not_found"
    for role in ("admin", "member", "billing"):
        member = await people.member(owner, rival, f"a-{role}", role)
        assert (await read(member))["hosts"] is None
        assert (await put(member, [])).status == (200 if role == "admin" else 403)
        await put(owner, None)


async def test_an_intent_elsewhere_is_not_issued_by_any_path(tenant: Tenant, rival: Rival) -> None:
    """Singly with the shortcut and without, in a batch, which is refused whole, and in a dry run."""
    await put(tenant, ["example.org"])
    framework = {"Content-Type": "application/json; charset=utf-8"}
    for refused in (
        await issue(tenant, intent=ELSEWHERE),
        await issue(tenant, intent=ELSEWHERE, headers=framework),
        await issue(tenant, intent=ELSEWHERE, count=3),
        await issue(tenant, intent={**INTENT, "resource": {}}),
        await tenant.api.post("/v1/codes", json=tenant.code_body(intent=ELSEWHERE), params={"dry_run": "true"}),
    ):
        assert_refused(refused)
    assert await rival.rows("SELECT FROM codes") == []
    assert (await issue(tenant)).status == 201
    assert (await issue(tenant, count=2)).status == 201
    assert (await issue(tenant, intent={**ELSEWHERE, "type": "sound", "resource": {}})).status == 201
    other = await make_second_project(tenant)
    assert (await issue(other, intent=ELSEWHERE)).status == 201


async def test_replays_and_recoveries_answer_what_they_did_and_a_refusal_is_kept_under_no_key(tenant: Tenant) -> None:
    body = tenant.code_body(intent=ELSEWHERE)
    first = await tenant.api.post("/v1/codes", json=body, headers=KEY)
    await put(tenant, [])
    replayed = await tenant.api.post("/v1/codes", json=body, headers=KEY)
    recovered = await tenant.api.post("/v1/codes/recover", json=body, headers=KEY)
    assert first.body == replayed.body == recovered.body
    other = {"Idempotency-Key": "o" * 16}
    assert_refused(await tenant.api.post("/v1/codes", json=body, headers=other))
    await put(tenant, None)
    assert (await tenant.api.post("/v1/codes", json=body, headers=other)).status == 201


async def test_codes_of_before_resolve_as_ever(tenant: Tenant) -> None:
    code = await tenant.make_code(intent=ELSEWHERE)
    await put(tenant, [])
    assert (await tenant.api.resolve(code["broadcast_token"])).status == 200


@pytest.fixture
async def elsewhere(tenant: Tenant, database_url: Secret, clock: FakeClock) -> AsyncIterator[Tenant]:
    """The same tenant at another process of Core."""
    async with running_core(core_settings(database_url), clock) as api:
        yield replace(tenant, api=api)


async def test_from_the_answer_on_every_process_judges_by_the_new_list(tenant: Tenant, elsewhere: Tenant) -> None:
    for hosts, status in ((["example.org"], 422), (None, 201), ([], 422)):
        await put(tenant, hosts)
        assert [(await issue(place, intent=ELSEWHERE)).status for place in (elsewhere, tenant)] == [status] * 2


async def test_an_issuance_that_waits_for_a_new_list_is_judged_by_it(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        changing = await rival.while_waiting(put(tenant, ["example.org"]))
        issuing = asyncio.create_task(issue(tenant, intent=ELSEWHERE))
        await rival.until_someone_waits(2)
    assert (await changing).status == 200
    assert_refused(await issuing)


async def test_a_new_list_waits_for_an_issuance_that_was_first(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE codes IN SHARE MODE"):
        issuing = await rival.while_waiting(issue(tenant, intent=ELSEWHERE))
        changing = asyncio.create_task(put(tenant, []))
        await rival.until_someone_waits(2)
    assert ((await issuing).status, (await changing).status) == (201, 200)


async def test_a_suspended_organisation_can_still_close_the_door(tenant: Tenant) -> None:
    await tenant.api.put(f"/v1/platform/organizations/{tenant.organization_id}/suspension", json={"reason": "x"})
    assert (await put(tenant, [])).status == 200
