"""Core's key, with which proofs are verified: changed for one integration, and for all."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.api.core_client import Answer
from support.audience.client import CORE_KEY, OTHER_CORE_KEY, AudienceApi
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.kit.text import base64url

THIRD_KEY = {"key_id": "core-key-3", "public_key": base64url.encode(bytes(range(2, 34)))}
Trusted = tuple[str, bytes, str | None, bytes | None, datetime | None]


async def trusted(rival: Rival, integration_id: str) -> Trusted:
    """Return the key that an integration trusts, and the one before it."""
    (row,) = await rival.rows(
        "SELECT core_key_id, core_public_key, previous_key_id, previous_public_key, previous_until"
        "  FROM integrations WHERE id = %s",
        integration_id,
    )
    return tuple(row)


def raw(key: dict[str, str]) -> tuple[str, bytes]:
    return key["key_id"], base64url.decode(key["public_key"])


async def push(
    audience: AudienceApi, key: dict[str, str], after: str | None = None, limit: int = 1000, **changes: Any
) -> Answer:
    body = {**key, "after": after, "limit": limit, "still_signs": None, **changes}
    return await audience.call("POST", "/v1/core-keys", json=body)


async def test_the_previous_key_is_trusted_for_seven_more_minutes(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration()
    now = audience.clock.freeze()

    answer = await given.change("core-key", OTHER_CORE_KEY)

    assert (answer.status, answer.json) == (200, {"integration_id": given.id, "core_key_id": "core-key-2"})
    expected = (*raw(OTHER_CORE_KEY), *raw(CORE_KEY), now + timedelta(minutes=7))
    assert await trusted(audience_rival, given.id) == expected
    assert (await given.read()).json["core_key_id"] == "core-key-2"


async def test_only_one_previous_key_is_kept(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration()
    now = audience.clock.freeze()
    for key in (OTHER_CORE_KEY, THIRD_KEY):
        await given.change("core-key", key)

    expected = (*raw(THIRD_KEY), *raw(OTHER_CORE_KEY), now + timedelta(minutes=7))
    assert await trusted(audience_rival, given.id) == expected


async def test_a_key_that_is_already_trusted_changes_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    """Otherwise the previous key would be forgotten at once, and events under way would be refused."""
    given = await audience.make_integration()
    await given.change("core-key", OTHER_CORE_KEY)
    before = await trusted(audience_rival, given.id)
    audience.clock.advance(minutes=3)

    answer = await given.change("core-key", OTHER_CORE_KEY)

    assert answer.json["core_key_id"] == "core-key-2"
    assert await trusted(audience_rival, given.id) == before


async def test_no_other_integration_is_touched(audience: AudienceApi, audience_rival: Rival) -> None:
    given, other = await audience.make_integration(), await audience.make_integration()

    await given.change("core-key", OTHER_CORE_KEY)

    assert await trusted(audience_rival, other.id) == (*raw(CORE_KEY), None, None, None)


async def test_every_integration_but_the_revoked_trusts_it(
    audience: AudienceApi, audience_rival: Rival, audience_clock: FakeClock
) -> None:
    now = audience_clock.freeze()
    given = [await audience.make_integration(organization_id=f"org_number_{number}") for number in range(3)]
    revoked = await audience.make_integration()
    await revoked.change("revoke")

    answer = await push(audience, OTHER_CORE_KEY)

    assert (answer.status, answer.json) == (200, {"data": sorted(one.id for one in given), "next": None})
    for one in given:
        expected = (*raw(OTHER_CORE_KEY), *raw(CORE_KEY), now + timedelta(minutes=7))
        assert await trusted(audience_rival, one.id) == expected
    assert await trusted(audience_rival, revoked.id) == (*raw(CORE_KEY), None, None, None)


async def test_it_proceeds_in_steps_each_of_which_continues_after_the_last(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    ids = sorted([(await audience.make_integration()).id for _ in range(5)])

    first = (await push(audience, OTHER_CORE_KEY, limit=2)).json
    assert first == {"data": ids[:2], "next": ids[1]}
    assert [(await trusted(audience_rival, identity))[0] for identity in ids] == ["core-key-2"] * 2 + ["core-key-1"] * 3
    second = (await push(audience, OTHER_CORE_KEY, after=first["next"], limit=2)).json
    assert second == {"data": ids[2:4], "next": ids[3]}
    third = (await push(audience, OTHER_CORE_KEY, after=second["next"], limit=2)).json
    assert third == {"data": ids[4:], "next": None}
    assert (await push(audience, OTHER_CORE_KEY, after=ids[-1], limit=2)).json == {"data": [], "next": None}


async def test_started_again_it_leaves_the_previous_key_its_seven_minutes(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    """A rotation that died is started again; integrations that already have the key are not updated again."""
    given = await audience.make_integration()
    await push(audience, OTHER_CORE_KEY)
    before = await trusted(audience_rival, given.id)
    audience.clock.advance(minutes=3)

    assert (await push(audience, OTHER_CORE_KEY)).json["data"] == [given.id]
    assert await trusted(audience_rival, given.id) == before


async def test_a_previous_key_that_still_signs_gets_its_seven_minutes_again(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    """Only for an integration where it is the previous key; the trusted key stays."""
    given, other = await audience.make_integration(), await audience.make_integration()
    for key in (THIRD_KEY, OTHER_CORE_KEY):
        await other.change("core-key", key)
    await push(audience, OTHER_CORE_KEY)
    untouched = await trusted(audience_rival, other.id)
    audience.clock.freeze()
    audience.clock.advance(minutes=20)

    await push(audience, OTHER_CORE_KEY, still_signs=CORE_KEY["key_id"])

    expected = (*raw(OTHER_CORE_KEY), *raw(CORE_KEY), audience.clock.now() + timedelta(minutes=7))
    assert await trusted(audience_rival, given.id) == expected
    assert await trusted(audience_rival, other.id) == untouched


async def test_the_seven_minutes_begin_after_the_wait(audience: AudienceApi, audience_rival: Rival) -> None:
    given = await audience.make_integration()
    audience.clock.freeze()
    async with audience_rival.holding("SELECT FROM integrations FOR UPDATE"):
        waiting = await audience_rival.while_waiting(push(audience, OTHER_CORE_KEY))
        audience.clock.advance(minutes=1)
    await waiting

    assert (await trusted(audience_rival, given.id))[4] == audience.clock.now() + timedelta(minutes=7)


async def test_two_pushes_and_a_replacement_at_once_end_with_one_key(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    given = [await audience.make_integration() for _ in range(3)]
    async with audience_rival.holding("SELECT FROM integrations FOR UPDATE"):
        asking = [
            asyncio.create_task(push(audience, OTHER_CORE_KEY)),
            asyncio.create_task(push(audience, OTHER_CORE_KEY)),
            asyncio.create_task(given[1].change("core-key", OTHER_CORE_KEY)),
        ]
        await audience_rival.until_someone_waits(3)
    assert [(await one).status for one in asking] == [200, 200, 200]
    for one in given:
        assert (await trusted(audience_rival, one.id))[:4] == (*raw(OTHER_CORE_KEY), *raw(CORE_KEY))


async def test_a_push_that_dies_has_changed_nothing(audience: AudienceApi, audience_rival: Rival) -> None:
    given = [await audience.make_integration() for _ in range(2)]
    last = max(one.id for one in given)
    async with audience_rival.holding("SELECT FROM integrations WHERE id = %s FOR UPDATE", last):
        dying = await audience_rival.while_waiting(push(audience, OTHER_CORE_KEY))
        await audience_rival.kill_waiting_sessions()
        assert (await dying).status == 503
    for one in given:
        assert (await trusted(audience_rival, one.id))[0] == "core-key-1"


@pytest.mark.parametrize(
    "changes",
    [
        {"key_id": ""},
        {"key_id": 5},
        {"public_key": "A"},
        {"public_key": None},
        {"after": "org_x"},
        {"after": ""},
        {"limit": 0},
        {"limit": 1001},
        {"limit": "5"},
        {"still_signs": ""},
        {"seed": "A"},
    ],
)
async def test_a_wrong_member_is_refused(audience: AudienceApi, audience_rival: Rival, changes: dict[str, Any]) -> None:
    given = await audience.make_integration()
    answer = await push(audience, OTHER_CORE_KEY, **{"limit": 10, **changes})

    assert (answer.status, answer.json["code"]) == (422, "validation_failed")
    assert (await trusted(audience_rival, given.id))[0] == "core-key-1"


@pytest.mark.parametrize("body", [{}, CORE_KEY | {"key_id": ""}, CORE_KEY | {"public_key": "A" * 44}, [], None])
async def test_a_wrong_key_for_one_integration_is_refused(
    audience: AudienceApi, audience_rival: Rival, body: Any
) -> None:
    given = await audience.make_integration()

    answer = await given.change("core-key", body)

    assert answer.status in {415, 422}
    assert (await trusted(audience_rival, given.id))[0] == "core-key-1"
