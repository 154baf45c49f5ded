"""`PUT /v1/billing/admin/plans/{plan_id}`."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.billing.catalog import AUDIENCE_PLAN, CODES_PLAN, put_plan, read_catalog
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import format_timestamp

STARTER = {"name": "Codes Starter", "product": "codes", "monthly_code_quota": 100, "active": True}
CONTRACT = {"name": "Audience Contract", "product": "audience", "monthly_event_quota": 5000, "active": True}


async def refreshed(rival: Rival) -> list[Any]:
    """Return the jobs that carry a new quota to Audience."""
    rows = await rival.rows(
        "SELECT lock, args - 'traceparent' FROM procrastinate_jobs WHERE task_name = 'refresh_plan'"
    )
    await rival.run("DELETE FROM procrastinate_jobs WHERE task_name = 'refresh_plan'")
    return rows


@pytest.mark.parametrize("body", [CODES_PLAN, AUDIENCE_PLAN], ids=["codes", "audience"])
async def test_a_plan_is_made_and_changed(api: Api, body: dict[str, Any]) -> None:
    """With the quota of its product, and not the other."""
    api.clock.freeze()
    for changes in ({}, {}, {"name": "Renamed", "active": False}):
        api.clock.advance(seconds=1)
        answer = await put_plan(api, "plan_1", {**body, **changes})
        expected = {"plan_id": "plan_1", **body, **changes, "updated_at": format_timestamp(api.clock.now())}
        assert (answer.status, answer.json) == (200, expected)
        assert expected in (await read_catalog(api))["plans"]


@pytest.mark.parametrize("plan_id", ["plan_a", "plan_" + "a" * 64])
async def test_an_id_is_chosen_by_the_caller(api: Api, plan_id: str) -> None:
    answer = await put_plan(api, plan_id, CODES_PLAN)
    assert (answer.status, answer.json["plan_id"]) == (200, plan_id)


@pytest.mark.parametrize("plan_id", ["plan_", "plan_" + "a" * 65, "offer_1"])
async def test_another_id_is_refused(api: Api, plan_id: str) -> None:
    answer = await put_plan(api, plan_id, CODES_PLAN)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [("path", "/plan_id")]


@pytest.mark.parametrize("quota", [0, 2**53 - 1, 7.0])
async def test_a_quota_is_a_whole_number_that_json_holds_exactly(api: Api, rival: Rival, quota: float) -> None:
    for product, member in (("codes", "monthly_code_quota"), ("audience", "monthly_event_quota")):
        body = {"name": "Plan", "product": product, member: quota, "active": True}
        answer = await put_plan(api, f"plan_{product}_x", body)
        assert (answer.status, answer.json[member]) == (200, int(quota))
        assert f'"{member}":{int(quota)},' in answer.body.decode()
        kept = await rival.rows(f"SELECT {member} FROM plans WHERE id = %s", f"plan_{product}_x")
        assert kept == [(int(quota),)]


@pytest.mark.parametrize(
    ("changes", "pointers"),
    [
        ({"monthly_code_quota": -1}, ["/monthly_code_quota"]),
        ({"monthly_code_quota": 2**53}, ["/monthly_code_quota"]),
        ({"monthly_code_quota": 1.5}, ["/monthly_code_quota"]),
        ({"monthly_event_quota": 5}, ["/monthly_event_quota"]),
        ({"product": "audience"}, ["/monthly_event_quota", "/monthly_code_quota"]),
        ({"product": "support"}, ["/product"]),
        ({"active": 1}, ["/active"]),
    ],
    ids=repr,
)
async def test_another_body_is_refused(api: Api, changes: dict[str, Any], pointers: list[str]) -> None:
    answer = await put_plan(api, "plan_1", {**CODES_PLAN, **changes})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert {error["pointer"] for error in answer.json["errors"]} == set(pointers)
    assert "plan_1" not in str(await read_catalog(api))


async def test_a_product_never_changes(api: Api) -> None:
    await put_plan(api, "plan_1", CODES_PLAN)
    answer = await put_plan(api, "plan_1", AUDIENCE_PLAN)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert answer.json["errors"] == [{"location": "body", "pointer": "/product", "message": "must stay codes"}]
    plans = {plan["plan_id"]: plan for plan in (await read_catalog(api))["plans"]}
    assert plans["plan_1"]["monthly_code_quota"] == CODES_PLAN["monthly_code_quota"]


@pytest.mark.parametrize(
    ("plan_id", "body"),
    [("plan_codes_starter", STARTER), ("plan_audience_contract", CONTRACT)],
    ids=["codes", "audience"],
)
async def test_a_seeded_plan_stays_active(api: Api, plan_id: str, body: dict[str, Any]) -> None:
    """Its name and its quota may be changed."""
    before = await read_catalog(api)
    answer = await put_plan(api, plan_id, {**body, "active": False})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/active"]
    assert await read_catalog(api) == before
    quota = "monthly_code_quota" if "monthly_code_quota" in body else "monthly_event_quota"
    answer = await put_plan(api, plan_id, {**body, "name": "Other", quota: 0})
    assert (answer.status, answer.json["name"], answer.json[quota]) == (200, "Other", 0)


async def test_a_new_quota_of_starter_applies_at_once(api: Api, tenant: Tenant) -> None:
    await put_plan(api, "plan_codes_starter", {**STARTER, "monthly_code_quota": 1})
    await tenant.make_code()
    refused = await api.post("/v1/codes", json=tenant.code_body())
    assert (refused.status, refused.code) == (429, "quota_exceeded")


async def test_a_new_quota_is_carried_to_audience_for_everybody_who_has_the_plan(api: Api, rival: Rival) -> None:
    """A job does it, which knows only the plan's id. Nothing else that changes causes one: issuance reads the plan."""
    await put_plan(api, "plan_0", CODES_PLAN)
    await put_plan(api, "plan_0", {**CODES_PLAN, "monthly_code_quota": 7})
    await put_plan(api, "plan_1", AUDIENCE_PLAN)
    await put_plan(api, "plan_1", {**AUDIENCE_PLAN, "name": "Renamed", "active": False})
    assert await refreshed(rival) == []
    await put_plan(api, "plan_1", {**AUDIENCE_PLAN, "monthly_event_quota": 7})
    assert await refreshed(rival) == [("refresh_plan:plan_1", {"plan_id": "plan_1"})]


async def test_a_change_is_one_event_of_the_log(api: Api, capsys: Any) -> None:
    await put_plan(api, "plan_1", CODES_PLAN)
    changes = [line for line in capsys.readouterr().out.splitlines() if "plan_changed" in line]
    assert len(changes) == 1
    for part in ("plan_id=plan_1", "product=codes", "monthly_quota=5000", "active=True", "subject_id=operator"):
        assert part in changes[0]


async def test_a_refused_change_is_no_event_of_the_log(api: Api, capsys: Any) -> None:
    await put_plan(api, "plan_codes_starter", {**STARTER, "active": False})
    await put_plan(api, "plan_codes_starter", AUDIENCE_PLAN)
    assert "plan_changed" not in capsys.readouterr().out


async def test_of_two_concurrent_changes_the_last_one_holds(api: Api, rival: Rival) -> None:
    """The second waits for the first to commit; neither is an error."""
    await put_plan(api, "plan_1", AUDIENCE_PLAN)
    async with rival.committing("UPDATE plans SET name = 'First', monthly_event_quota = 1 WHERE id = 'plan_1'"):
        changing = await rival.while_waiting(put_plan(api, "plan_1", AUDIENCE_PLAN))
    assert (await changing).json["monthly_event_quota"] == 50_000
    assert await refreshed(rival) == [("refresh_plan:plan_1", {"plan_id": "plan_1"})], "compared under the lock"


async def test_of_two_that_make_one_plan_the_second_changes_it(api: Api, rival: Rival) -> None:
    """Its product is judged after the wait."""
    insert = "INSERT INTO plans VALUES ('plan_1', 'First', 'codes', 1, NULL, true, now())"
    async with rival.committing(insert):
        making = await rival.while_waiting(put_plan(api, "plan_1", CODES_PLAN))
    assert ((await making).status, (await making).json["name"]) == (200, CODES_PLAN["name"])
    insert = "INSERT INTO plans VALUES ('plan_2', 'First', 'codes', 1, NULL, true, now())"
    async with rival.committing(insert):
        making = await rival.while_waiting(put_plan(api, "plan_2", AUDIENCE_PLAN))
    assert ((await making).status, (await making).code) == (422, "validation_failed")


async def test_a_change_whose_connection_dies_is_not_made(api: Api, rival: Rival) -> None:
    before = await read_catalog(api)
    async with rival.holding("LOCK TABLE plans IN EXCLUSIVE MODE"):
        making = await rival.while_waiting(put_plan(api, "plan_1", CODES_PLAN))
        assert await rival.kill_waiting_sessions() == 1
        answer = await making
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await read_catalog(api) == before
