"""Revoking an integration: for good, and once."""

import asyncio

import pytest
from support.audience.client import CORE_KEY, OTHER_CORE_KEY, AudienceApi, new_operation_id
from support.database.rival import Rival

from soundmark.kit.text.timestamps import format_timestamp

# The changes of an existing integration, with a body where it takes one.
CHANGES = [
    ("revoke", None),
    ("secret", None),
    ("core-key", OTHER_CORE_KEY),
    ("retention", {"retention_days": 7}),
]


async def test_it_is_revoked_from_now_on(audience: AudienceApi) -> None:
    given = await audience.make_integration()
    now = audience.clock.freeze()

    answer = await given.change("revoke")

    assert answer.status == 200
    assert answer.json == {**given.view, "status": "revoked", "revoked_at": format_timestamp(now)}
    assert (await given.read()).json == answer.json


async def test_revoked_again_it_stays_as_it_is(audience: AudienceApi) -> None:
    given = await audience.make_integration()
    first = await given.change("revoke")
    audience.clock.advance(hours=1)

    assert (await given.change("revoke")).json == first.json


@pytest.mark.parametrize(("action", "body"), CHANGES[1:])
async def test_a_revoked_integration_changes_no_more(
    audience: AudienceApi, audience_rival: Rival, action: str, body: dict[str, object] | None
) -> None:
    given = await audience.make_integration()
    await given.change("revoke")
    before = await audience_rival.rows("SELECT * FROM integrations")

    answer = await given.change(action, body)

    assert (answer.status, answer.json["code"]) == (409, "integration_revoked")
    assert await audience_rival.rows("SELECT * FROM integrations") == before


@pytest.mark.parametrize(("action", "body"), CHANGES)
@pytest.mark.parametrize(
    "elsewhere",
    [{"organization_id": "org_of_somebody_else"}, {"project_id": "prj_another"}],
    ids=["organization", "project"],
)
async def test_an_integration_of_another_tenant_or_project_is_not_found(
    audience: AudienceApi,
    audience_rival: Rival,
    action: str,
    body: dict[str, object] | None,
    elsewhere: dict[str, str],
) -> None:
    given = await audience.make_integration()
    before = await audience_rival.rows("SELECT * FROM integrations")

    answer = await given.change(action, body, **elsewhere)

    assert (answer.status, answer.json["code"]) == (404, "integration_not_found")
    assert await audience_rival.rows("SELECT * FROM integrations") == before
    assert len(await audience_rival.rows("SELECT FROM operations")) == 1, "only that which made it"


@pytest.mark.parametrize(("action", "body"), CHANGES)
async def test_an_unknown_integration_is_not_found(
    audience: AudienceApi, action: str, body: dict[str, object] | None, subtests: pytest.Subtests
) -> None:
    for identity in ["int_unknown_to_everybody", "int_", "org_x", "%00", "%F0%9F%94%94", "a" * 200]:
        with subtests.test(identity=identity):
            given = await audience.make_integration()

            answer = await audience.call(
                "PATCH" if action == "retention" else "POST",
                f"/v1/integrations/{identity}/{action}",
                operation_id=new_operation_id(),
                params=given.query,
                **({} if body is None else {"json": body}),
            )

            assert (answer.status, answer.json["code"]) == (404, "integration_not_found")


@pytest.mark.parametrize(("action", "body"), CHANGES)
@pytest.mark.parametrize("missing", ["organization_id", "project_id", "operation"])
async def test_without_tenant_or_operation_nothing_is_changed(
    audience: AudienceApi, audience_rival: Rival, action: str, body: dict[str, object] | None, missing: str
) -> None:
    given = await audience.make_integration()
    before = await audience_rival.rows("SELECT * FROM integrations")

    answer = await audience.call(
        "PATCH" if action == "retention" else "POST",
        f"/v1/integrations/{given.id}/{action}",
        operation_id=None if missing == "operation" else new_operation_id(),
        params={name: value for name, value in given.query.items() if name != missing},
        **({} if body is None else {"json": body}),
    )

    assert (answer.status, answer.json["code"]) == (422, "validation_failed")
    assert await audience_rival.rows("SELECT * FROM integrations") == before


@pytest.mark.parametrize(("action", "body"), CHANGES)
async def test_a_repeated_operation_gets_the_same_answer_and_does_nothing(
    audience: AudienceApi, audience_rival: Rival, action: str, body: dict[str, object] | None
) -> None:
    given = await audience.make_integration()
    operation_id = new_operation_id()
    first = await given.change(action, body, operation_id=operation_id)
    before = await audience_rival.rows("SELECT * FROM integrations")
    audience.clock.advance(hours=1)

    repeated = await given.change(action, body, operation_id=operation_id)

    told_once = {"hmac_secret": None} if action == "secret" else {}
    assert (repeated.status, repeated.json) == (200, {**first.json, **told_once})
    assert await audience_rival.rows("SELECT * FROM integrations") == before


@pytest.mark.parametrize(("action", "body"), CHANGES)
async def test_two_at_once_with_one_operation_id_do_it_once(
    audience: AudienceApi, audience_rival: Rival, action: str, body: dict[str, object] | None
) -> None:
    given = await audience.make_integration()
    operation_id = new_operation_id()
    async with audience_rival.holding("SELECT FROM integrations FOR UPDATE"):
        asking = [asyncio.create_task(given.change(action, body, operation_id=operation_id)) for _ in range(2)]
        await audience_rival.until_someone_waits(2)
    answers = [await one for one in asking]

    assert [answer.status for answer in answers] == [200, 200]
    assert len({answer.body for answer in answers}) == (2 if action == "secret" else 1)
    assert len(await audience_rival.rows("SELECT FROM operations")) == 2, "that which made it, and this one"


@pytest.mark.parametrize(("action", "body"), CHANGES)
async def test_a_revocation_that_dies_midway_changes_nothing(
    audience: AudienceApi, audience_rival: Rival, action: str, body: dict[str, object] | None
) -> None:
    given = await audience.make_integration()
    operation_id = new_operation_id()
    before = await audience_rival.rows("SELECT * FROM integrations")
    async with audience_rival.holding("LOCK TABLE operations IN SHARE MODE"):
        dying = await audience_rival.while_waiting(given.change(action, body, operation_id=operation_id))
        await audience_rival.kill_waiting_sessions()
        assert (await dying).status == 503
    assert await audience_rival.rows("SELECT * FROM integrations") == before

    assert (await given.change(action, body, operation_id=operation_id)).status == 200


@pytest.mark.parametrize(("action", "body"), CHANGES[1:])
async def test_an_operation_that_waited_for_a_revocation_sees_it(
    audience: AudienceApi, audience_rival: Rival, action: str, body: dict[str, object] | None
) -> None:
    given = await audience.make_integration()
    revoking = "UPDATE integrations SET revoked_at = now()"
    async with audience_rival.committing(revoking):
        waiting = await audience_rival.while_waiting(given.change(action, body))

    assert (await waiting).json["code"] == "integration_revoked"


async def test_a_body_must_be_json(audience: AudienceApi) -> None:
    given = await audience.make_integration()
    path = f"/v1/integrations/{given.id}/core-key"

    async def put(content: bytes, media_type: str) -> str:
        headers = {"content-type": media_type, "x-svc-operation-id": new_operation_id()}
        answer = await audience.call("POST", path, params=given.query, content=content, headers=headers)
        code: str = answer.json["code"]
        return code

    assert await put(b"{}", "text/plain") == "unsupported_media_type"
    assert await put(b"{", "application/json") == "malformed_json"
    assert await put(b'{"key_id":"a","key_id":"b"}', "application/json") == "malformed_json"
    assert await put(b"[]", "application/json") == "validation_failed"
    assert await put(b" " * (1024 * 1024 + 1), "application/json") == "payload_too_large"
    assert CORE_KEY["key_id"] == (await given.read()).json["core_key_id"]
