"""The deadline that travels with each private call: when it passes, Audience stops, and nothing is changed."""

from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.client import (
    CORE_KEY,
    ORGANIZATION,
    AudienceApi,
    AudienceIntegration,
    entitlement_body,
    integration_body,
    new_operation_id,
)
from support.database.rival import Rival

SHORT = {"X-Svc-Timeout-Ms": "300"}
EVERYTHING = "LOCK TABLE integrations, entitlements, operations, event_months, legacy_days IN ACCESS EXCLUSIVE MODE"
WAITING = "SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def calls(given: AudienceIntegration) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Return a valid call of each private operation, except the one that outlives its caller: method, path, options."""
    one = f"/v1/integrations/{given.id}"
    operation = {"operation_id": new_operation_id()}
    query = {"params": given.query}
    key = {**CORE_KEY, "after": None, "limit": 10, "still_signs": None}
    return {
        "create": ("POST", "/v1/integrations", {**operation, "json": integration_body()}),
        "list": ("GET", "/v1/integrations", {"params": {**given.query, "limit": 5}}),
        "read": ("GET", one, query),
        "revoke": ("POST", f"{one}/revoke", {**operation, **query}),
        "secret": ("POST", f"{one}/secret", {**operation, **query}),
        "core-key": ("POST", f"{one}/core-key", {**operation, **query, "json": CORE_KEY}),
        "core-keys": ("POST", "/v1/core-keys", {"json": key}),
        "entitlement": ("PUT", f"/v1/entitlements/{ORGANIZATION}/contract", {"json": entitlement_body()}),
        "operation": ("GET", f"/v1/operations/{new_operation_id()}", {}),
        "usage": ("GET", "/v1/usage", {"params": {"organization_id": ORGANIZATION, "month": "2026-11"}}),
        "report": ("GET", f"/v1/reports/{given.id}", query),
        "administration": ("GET", f"/v1/reports/{given.id}", {}),
        "legacy-days": (
            "PUT",
            "/v1/legacy-days",
            {"json": {**given.query, "days": [{"day": "2026-01-01", "events": 1}]}},
        ),
        "legacy-report": ("GET", "/v1/legacy-report", query),
    }


async def stored(rival: Rival) -> list[Any]:
    """Return everything that a private operation could change."""
    return [
        await rival.rows(f"SELECT t::text FROM {table} t ORDER BY 1")
        for table in ("integrations", "entitlements", "operations", "event_months", "legacy_days")
    ]


async def call(audience: AudienceApi, given: AudienceIntegration, name: str, headers: dict[str, str]) -> Answer:
    method, path, options = calls(given)[name]
    return await audience.call(method, path, headers=headers, **options)


async def test_every_operation_ends_at_the_deadline_and_changes_nothing(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    """While its lock is still held, none of its queries remains in the database."""
    given = await audience.make_integration()
    before = await stored(audience_rival)
    names = list(calls(given))

    async with audience_rival.holding(EVERYTHING):
        ended = [await call(audience, given, name, SHORT) for name in names]
        await audience_rival.until_rows(WAITING)

    late = (503, "deadline_passed")
    assert {name: (answer.status, answer.json["code"]) for name, answer in zip(names, ended, strict=True)} == (
        dict.fromkeys(names, late)
    )
    assert await stored(audience_rival) == before


async def test_an_operation_that_was_ended_is_done_when_it_is_sent_again(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    given, operation_id = await audience.make_integration(), new_operation_id()
    path = f"/v1/integrations/{given.id}/revoke"
    async with audience_rival.holding(EVERYTHING):
        ended = await audience.call("POST", path, operation_id=operation_id, params=given.query, headers=SHORT)
    assert ended.status == 503
    assert (await audience.call("GET", f"/v1/operations/{operation_id}")).status == 404

    done = await audience.call("POST", path, operation_id=operation_id, params=given.query, headers=SHORT)

    assert (done.status, done.json["status"]) == (200, "revoked")


async def test_a_deletion_goes_on_without_its_caller(audience: AudienceApi, audience_rival: Rival) -> None:
    """Deleting years of events takes longer than Core waits: if it ended each time, they would never be deleted."""
    given, operation_id = await audience.make_integration(), new_operation_id()
    changing = given.api.call(
        "PATCH",
        f"/v1/integrations/{given.id}/retention",
        operation_id=operation_id,
        params=given.query,
        headers=SHORT,
        json={"retention_days": 7},
    )
    async with audience_rival.holding(EVERYTHING):
        task = await audience_rival.while_waiting(changing)
        # Its deadline is after that of the deletion.
        assert (await call(audience, given, "read", SHORT)).status == 503
        assert len(await audience_rival.rows(WAITING)) == 1

    assert ((await task).status, (await task).json["retention_days"]) == (200, 7)
    assert (await audience.call("GET", f"/v1/operations/{operation_id}")).status == 200


@pytest.mark.parametrize("sent", ["", "0", "-1", "1.5", "1s", "soon", "5, 5", "9" * 400])
async def test_a_malformed_timeout_leaves_the_components_default(
    audience: AudienceApi, audience_rival: Rival, sent: str
) -> None:
    given = await audience.make_integration()
    async with audience_rival.holding(EVERYTHING):
        reading = await audience_rival.while_waiting(call(audience, given, "read", {"X-Svc-Timeout-Ms": sent}))

    assert (await reading).status == 200


async def test_the_callers_name_changes_no_answer(audience: AudienceApi) -> None:
    given = await audience.make_integration()
    for name in ("soundmark-core", "root", "x y", ""):
        assert (await call(audience, given, "read", {"X-Svc-Caller": name})).status == 200
        stranger = AudienceApi(audience.app, audience.clock, credential=None)
        assert (await call(stranger, given, "read", {"X-Svc-Caller": name})).status == 401
