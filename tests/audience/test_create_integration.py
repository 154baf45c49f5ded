"""Creating an integration: what is stored, who may have one, and that it is created once."""

import asyncio
from datetime import timedelta

import pytest
from support.audience.client import (
    CORE_KEY,
    MASTER_KEY,
    ORGANIZATION,
    PROJECT,
    AudienceApi,
    entitlement_body,
    integration_body,
    new_operation_id,
)
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.audience.secrets import open_hmac_secret
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

PAID = ["contract", "self_service"]


async def test_an_integration_is_answered_with_its_secret(audience: AudienceApi) -> None:
    now = audience.clock.freeze()

    answer = await audience.create()

    assert answer.status == 201
    view = answer.json["integration"]
    assert view == {
        "id": view["id"],
        "organization_id": ORGANIZATION,
        "project_id": PROJECT,
        "mode": "demo",
        "retention_days": 14,
        "status": "active",
        "core_key_id": "core-key-1",
        "created_at": format_timestamp(now),
        "secret_rotated_at": None,
        "revoked_at": None,
    }
    assert (view["id"][:4], len(view["id"])) == ("int_", 26)
    secret = answer.json["hmac_secret"]
    assert (secret[:4], len(base64url.decode(secret[4:]))) == ("xhm_", 32)


async def test_the_secret_is_kept_sealed_to_its_row(audience: AudienceApi, audience_rival: Rival) -> None:
    """Neither the database alone nor another row's envelope reveals it."""
    one, other = await audience.make_integration(), await audience.make_integration()
    sealed = dict(await audience_rival.rows("SELECT id, sealed_secret FROM integrations"))
    sealer = Sealer(parse_master_key(MASTER_KEY), SystemEntropy())

    assert open_hmac_secret(sealer, one.id, sealed[one.id]).reveal() == one.hmac_secret
    assert one.hmac_secret.encode() not in sealed[one.id]
    with pytest.raises(SealBroken):
        open_hmac_secret(sealer, one.id, sealed[other.id])


async def test_the_key_of_core_is_stored_completely(audience: AudienceApi, audience_rival: Rival) -> None:
    await audience.make_integration()

    rows = await audience_rival.rows(
        "SELECT core_key_id, core_public_key, previous_key_id, previous_public_key, previous_until FROM integrations"
    )

    assert rows == [(CORE_KEY["key_id"], base64url.decode(CORE_KEY["public_key"]), None, None, None)]


@pytest.mark.parametrize("mode", PAID)
async def test_a_paid_mode_needs_an_entitlement(audience: AudienceApi, audience_rival: Rival, mode: str) -> None:
    answer = await audience.create(mode=mode, retention_days=730)

    assert (answer.status, answer.json["code"]) == (409, "entitlement_required")
    assert await audience_rival.rows("SELECT FROM integrations UNION ALL SELECT FROM operations") == []


@pytest.mark.parametrize("mode", PAID)
async def test_the_entitlement_is_kept_with_the_integration(
    audience: AudienceApi, audience_rival: Rival, mode: str
) -> None:
    """Audience refuses events after its end without asking Core."""
    ends_at = audience.clock.freeze() + timedelta(days=1)

    answer = await audience.create(
        mode=mode, retention_days=730, entitlement=entitlement_body(ends_at=format_timestamp(ends_at), revision=7)
    )

    assert answer.status == 201
    assert await audience_rival.rows("SELECT * FROM entitlements") == [(ORGANIZATION, mode, 5000, ends_at, 7)]


async def test_an_entitlement_that_is_already_known_suffices(audience: AudienceApi) -> None:
    await audience.make_integration(mode="contract", entitlement=entitlement_body())

    assert (await audience.create(mode="contract")).status == 201
    assert (await audience.create(mode="self_service")).json["code"] == "entitlement_required"


async def test_an_entitlement_that_ends_now_is_over(audience: AudienceApi) -> None:
    now = audience.clock.freeze()
    almost = entitlement_body(ends_at=format_timestamp(now + timedelta(milliseconds=1)))

    over = await audience.create(mode="contract", entitlement=entitlement_body(ends_at=format_timestamp(now)))

    assert (over.status, over.json["code"]) == (409, "entitlement_required")
    assert (await audience.create(mode="contract", entitlement=almost)).status == 201


async def test_an_older_entitlement_does_not_replace_a_newer(audience: AudienceApi, audience_rival: Rival) -> None:
    """A call that was delayed for long carries an outdated entitlement."""
    await audience.make_integration(mode="contract", entitlement=entitlement_body(revision=2))

    await audience.make_integration(mode="contract", entitlement=entitlement_body(monthly_event_quota=1, revision=1))

    assert await audience_rival.rows("SELECT monthly_event_quota, revision FROM entitlements") == [(5000, 2)]


async def test_a_refusal_leaves_no_entitlement_behind(audience: AudienceApi, audience_rival: Rival) -> None:
    long_over = entitlement_body(ends_at="2020-01-01T00:00:00.000Z")

    assert (await audience.create(mode="contract", entitlement=long_over)).status == 409
    assert await audience_rival.rows("SELECT FROM entitlements") == []


@pytest.mark.parametrize(("days", "status"), [(1, 201), (14, 201), (15, 422)])
async def test_a_demo_keeps_fourteen_days_at_most(audience: AudienceApi, days: int, status: int) -> None:
    answer = await audience.create(retention_days=days)

    assert answer.status == status
    if status == 422:
        assert answer.json["errors"] == [
            {"location": "body", "pointer": "/retention_days", "message": "must be at most 14 for a demo"}
        ]


async def test_a_body_with_one_member_wrong_is_refused(
    audience: AudienceApi, audience_rival: Rival, subtests: pytest.Subtests
) -> None:
    for changes, pointer in [
        ({"organization_id": None}, "/organization_id"),
        ({"organization_id": "org_\0"}, "/organization_id"),
        ({"organization_id": ""}, "/organization_id"),
        ({"project_id": 5}, "/project_id"),
        ({"mode": "free"}, "/mode"),
        ({"mode": None}, "/mode"),
        ({"retention_days": 0}, "/retention_days"),
        ({"retention_days": 731}, "/retention_days"),
        ({"retention_days": "14"}, "/retention_days"),
        ({"retention_days": 14.5}, "/retention_days"),
        ({"core_key": None}, "/core_key"),
        ({"core_key": {**CORE_KEY, "key_id": ""}}, "/core_key/key_id"),
        ({"core_key": {**CORE_KEY, "key_id": "k" * 161}}, "/core_key/key_id"),
        ({"core_key": {**CORE_KEY, "public_key": "A" * 42}}, "/core_key/public_key"),
        ({"core_key": {**CORE_KEY, "public_key": "A" * 42 + "B"}}, "/core_key/public_key"),
        ({"core_key": {**CORE_KEY, "seed": "A"}}, "/core_key/seed"),
        ({"entitlement": entitlement_body()}, ""),
        (
            {"mode": "contract", "entitlement": entitlement_body(monthly_event_quota=-1)},
            "/entitlement/monthly_event_quota",
        ),
        ({"mode": "contract", "entitlement": entitlement_body(revision=2**53)}, "/entitlement/revision"),
        ({"mode": "contract", "entitlement": entitlement_body(ends_at="tomorrow")}, "/entitlement/ends_at"),
        ({"mode": "contract", "entitlement": entitlement_body(plan="x")}, "/entitlement/plan"),
        ({"hmac_secret": "xhm_"}, "/hmac_secret"),
    ]:
        with subtests.test(changes=changes, pointer=pointer):
            answer = await audience.create(**changes)

            assert (answer.status, answer.json["code"]) == (422, "validation_failed")
            assert pointer in [error["pointer"] for error in answer.json["errors"]]
            assert await audience_rival.rows("SELECT FROM integrations UNION ALL SELECT FROM operations") == []


@pytest.mark.parametrize("name", integration_body())
async def test_a_body_that_lacks_a_member_is_refused(audience: AudienceApi, name: str) -> None:
    body = integration_body()
    del body[name]

    answer = await audience.call("POST", "/v1/integrations", operation_id=new_operation_id(), json=body)

    assert (answer.status, [error["pointer"] for error in answer.json["errors"]]) == (422, [f"/{name}"])


@pytest.mark.parametrize("operation_id", [None, "", "aud", "AUD_1", "aud_", "aud_ä", "aud_" + "x" * 129])
async def test_without_a_proper_operation_id_nothing_is_made(
    audience: AudienceApi, audience_rival: Rival, operation_id: str | None
) -> None:
    headers = {} if operation_id is None else {"X-Svc-Operation-Id": operation_id.encode("latin-1")}
    answer = await audience.call("POST", "/v1/integrations", headers=headers, json=integration_body())

    assert (answer.status, answer.json["errors"][0]["location"]) == (422, "header")
    assert await audience_rival.rows("SELECT FROM integrations") == []


async def test_a_repetition_returns_the_integration_and_never_the_secret(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    operation_id = new_operation_id()
    first = await audience.create(operation_id=operation_id)

    repeated = await audience.create(operation_id=operation_id)

    assert repeated.status == 201
    assert repeated.json == {"integration": first.json["integration"], "hmac_secret": None}
    assert len(await audience_rival.rows("SELECT FROM integrations")) == 1


async def test_no_stored_part_of_an_operation_holds_the_secret(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration()

    ((row,),) = await audience_rival.rows("SELECT operations::text FROM operations")
    assert given.id in row
    assert given.hmac_secret not in row
    assert "xhm_" not in row


async def test_two_equal_requests_at_once_create_one(audience: AudienceApi, audience_rival: Rival) -> None:
    operation_id = new_operation_id()
    async with audience_rival.holding("SELECT pg_advisory_xact_lock(1, hashtext(%s))", operation_id):
        asking = [asyncio.create_task(audience.create(operation_id=operation_id)) for _ in range(2)]
        await audience_rival.until_someone_waits(2)
    answers = [(await one).json for one in asking]

    assert answers[0]["integration"] == answers[1]["integration"]
    assert sum(answer["hmac_secret"] is not None for answer in answers) == 1
    assert len(await audience_rival.rows("SELECT FROM integrations")) == 1


async def test_an_operation_id_serves_one_operation(audience: AudienceApi, audience_rival: Rival) -> None:
    operation_id = new_operation_id()
    given = await audience.make_integration(operation_id=operation_id)

    for request in (
        audience.create(operation_id=operation_id, project_id="prj_of_somebody_else"),
        audience.create(operation_id=operation_id, organization_id="org_of_somebody_else"),
        given.change("revoke", operation_id=operation_id),
    ):
        answer = await request
        assert (answer.status, answer.json["code"]) == (409, "operation_conflict")
    assert await audience_rival.rows("SELECT id, revoked_at FROM integrations") == [(given.id, None)]


async def test_a_creation_that_dies_midway_creates_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    """A repetition then creates it, and gets the secret."""
    operation_id = new_operation_id()
    async with audience_rival.holding("LOCK TABLE integrations IN EXCLUSIVE MODE"):
        dying = await audience_rival.while_waiting(audience.create(operation_id=operation_id))
        await audience_rival.kill_waiting_sessions()
        assert (await dying).status == 503
    assert await audience_rival.rows("SELECT FROM operations") == []

    answer = await audience.create(operation_id=operation_id)

    assert (answer.status, answer.json["hmac_secret"][:4]) == (201, "xhm_")


async def test_the_end_of_an_entitlement_is_judged_at_the_creation(
    audience: AudienceApi, audience_rival: Rival, audience_clock: FakeClock
) -> None:
    """A request that waited for long does not get an integration after its entitlement has ended."""
    operation_id = new_operation_id()
    ends_at = format_timestamp(audience_clock.now() + timedelta(hours=1))
    async with audience_rival.holding("SELECT pg_advisory_xact_lock(1, hashtext(%s))", operation_id):
        waiting = await audience_rival.while_waiting(
            audience.create(mode="contract", entitlement=entitlement_body(ends_at=ends_at), operation_id=operation_id)
        )
        audience_clock.advance(hours=2)

    assert (await waiting).json["code"] == "entitlement_required"
