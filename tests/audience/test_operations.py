"""The outcome of an operation, which Core requests when it does not know it."""

import asyncio

import pytest
from support.api.core_client import Answer
from support.audience.client import CORE_KEY, AudienceApi, new_operation_id
from support.database.rival import Rival


async def outcome(audience: AudienceApi, operation_id: str) -> Answer:
    return await audience.call("GET", f"/v1/operations/{operation_id}")


@pytest.mark.parametrize(
    ("action", "body", "name"),
    [
        ("revoke", None, "revoke"),
        ("secret", None, "rotate_secret"),
        ("core-key", CORE_KEY, "replace_core_key"),
        ("retention", {"retention_days": 7}, "change_retention"),
    ],
)
async def test_an_operation_is_reported_without_any_secret(
    audience: AudienceApi, action: str, body: dict[str, object] | None, name: str
) -> None:
    given = await audience.make_integration()
    operation_id = new_operation_id()
    done = await given.change(action, body, operation_id=operation_id)

    answer = await outcome(audience, operation_id)

    told_once = {"hmac_secret": None} if action == "secret" else {}
    assert answer.status == 200
    assert answer.json == {
        "id": operation_id,
        **given.query,
        "integration_id": given.id,
        "action": name,
        "answer": {**done.json, **told_once},
    }
    assert "xhm_" not in answer.body.decode()


async def test_a_creation_names_its_integration(audience: AudienceApi) -> None:
    operation_id = new_operation_id()
    given = await audience.make_integration(operation_id=operation_id)

    answer = (await outcome(audience, operation_id)).json

    assert (answer["action"], answer["integration_id"]) == ("create", given.id)
    assert answer["answer"] == {"integration": given.view, "hmac_secret": None}


@pytest.mark.parametrize("operation_id", ["aud_unknown_to_everybody", "x", "%00", "a" * 200])
async def test_an_operation_that_never_arrived_is_unknown(audience: AudienceApi, operation_id: str) -> None:
    answer = await outcome(audience, operation_id)

    assert (answer.status, answer.json["code"]) == (404, "not_found")


async def test_a_refused_operation_is_not_recorded(audience: AudienceApi) -> None:
    operation_id = new_operation_id()
    assert (await audience.create(operation_id=operation_id, mode="contract")).status == 409

    assert (await outcome(audience, operation_id)).status == 404


async def test_a_request_waits_for_the_operation_under_way(audience: AudienceApi, audience_rival: Rival) -> None:
    """If it were told that nothing was done, Core would record a failure a moment before the operation succeeds."""
    operation_id = new_operation_id()
    async with audience_rival.holding("LOCK TABLE integrations IN EXCLUSIVE MODE"):
        making = await audience_rival.while_waiting(audience.create(operation_id=operation_id))
        asking = asyncio.create_task(outcome(audience, operation_id))
        await audience_rival.until_someone_waits(2)

    assert (await making).status == 201
    assert (await asking).status == 200
