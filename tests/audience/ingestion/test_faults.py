"""Failures of the database during ingestion: no event is answered "recorded" unless it was stored."""

import asyncio
import json
import re
from collections import Counter

import pytest
import structlog
from support.audience.client import AudienceApi, audience_settings, running_audience
from support.audience.event_publisher import cut_ingestion_connection, deliver_messages, make_publisher
from support.database.rival import Rival

from soundmark.kit.crypto.secret import Secret

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
LOCK_MONTHS = "SELECT * FROM event_months FOR UPDATE"


async def test_a_connection_that_died_idle_is_replaced(audience: AudienceApi, audience_rival: Rival) -> None:
    """After a restart of the server it looks alive until it is used; nothing was written on it."""
    source = await make_publisher(audience)
    await source.deliver()

    assert await cut_ingestion_connection(audience_rival) >= 1
    assert (await source.deliver()).status == 201


async def test_a_connection_that_dies_under_a_group_is_replaced_before_anything_is_written(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience)
    await source.deliver()

    async with audience_rival.holding(LOCK_MONTHS):
        delivering = await audience_rival.while_waiting(source.deliver())
        await audience_rival.kill_waiting_sessions()
        # The same group on a new connection, waiting for the same lock.
        await audience_rival.until_someone_waits()

    assert (await delivering).status == 201
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(2,)]


async def test_a_request_that_loses_two_connections_is_refused(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    await source.deliver()
    body = json.dumps(source.event()).encode()

    async with audience_rival.holding(LOCK_MONTHS):
        delivering = await audience_rival.while_waiting(source.deliver(body))
        await audience_rival.kill_waiting_sessions()
        await audience_rival.until_someone_waits()
        await audience_rival.kill_waiting_sessions()
        answer = await delivering

    assert (answer.status, answer.json["code"]) == (503, "database_unavailable")
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(1,)]
    assert (await source.deliver(body)).status == 201, "the delivery may be repeated"


async def test_a_lock_that_is_never_released_ends_in_an_answer(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    await source.deliver()

    async with audience_rival.holding(LOCK_MONTHS):
        answer = await source.deliver()

    assert (answer.status, answer.json["code"]) == (503, "database_unavailable")
    assert (await source.deliver()).status == 201


async def test_a_group_that_fails_is_wholly_undone(audience: AudienceApi, audience_rival: Rival) -> None:
    """A constraint is violated by the last statement: every caller gets an error, and no row of the group remains."""
    source = await make_publisher(audience)
    await source.deliver()
    bodies = [json.dumps(source.event()).encode() for _ in range(20)]
    async with audience_rival.refusing("spent_proofs"):
        answers = await asyncio.gather(*(source.deliver(body) for body in bodies))

    assert Counter(answer.json["code"] for answer in answers) == {"internal_error": 20}
    assert await audience_rival.rows("SELECT count(*), (SELECT sum(events)::int FROM event_months) FROM events") == [
        (1, 1)
    ]
    again = await asyncio.gather(*(source.deliver(body) for body in bodies))
    assert {answer.status for answer in again} == {201}


async def test_a_group_that_fails_is_not_judged_one_by_one(
    audience: AudienceApi, audience_rival: Rival, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its error is an outcome for all: what cannot be written together would cost a transaction for each event."""
    source = await make_publisher(audience)
    await source.deliver()
    async with audience_rival.refusing("spent_proofs"):
        async with audience_rival.holding(LOCK_MONTHS):
            first = await audience_rival.while_waiting(source.deliver())
            rest = [asyncio.create_task(source.deliver()) for _ in range(20)]
            await asyncio.sleep(0)
        answers = [await first, *await asyncio.gather(*rest)]

    assert {answer.json["code"] for answer in answers} == {"internal_error"}
    failed = [line for line in capsys.readouterr().out.splitlines() if "group_failed" in line]
    assert [re.findall(r"events=(\d+)", line) for line in failed] == [["1"], ["20"]]


async def test_a_group_that_waits_when_its_process_stops_is_given_up(
    audience: AudienceApi, audience_url: Secret, audience_rival: Rival
) -> None:
    """Nothing works on it afterwards, so it is not written by a process that has stopped."""
    source = await make_publisher(audience)
    await source.deliver()

    async with audience_rival.holding(LOCK_MONTHS):
        async with running_audience(audience_settings(audience_url), audience.clock) as stopping:
            delivering = await audience_rival.while_waiting(source.deliver(api=stopping))
        assert [task for task in asyncio.all_tasks() if task.get_name() == "batcher"] == []

    with pytest.raises(asyncio.CancelledError):
        await delivering
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(1,)]


async def test_the_count_of_a_purged_month_starts_again(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    await source.deliver()
    await audience_rival.run("DELETE FROM event_months")

    assert (await source.deliver()).status == 201

    assert await audience_rival.rows("SELECT events FROM event_months") == [(1,)]


async def test_a_purged_integration_is_unknown(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    await source.deliver()
    await audience_rival.run("TRUNCATE integrations, measured_codes")

    assert (await source.deliver()).status == 401


async def test_a_revocation_that_commits_while_a_group_waits_is_seen(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience)
    await source.deliver()

    async with audience_rival.holding(LOCK_MONTHS):
        delivering = await audience_rival.while_waiting(source.deliver())
        assert (await source.integration.change("revoke")).status == 200

    answer = await delivering
    assert (answer.status, answer.json["code"]) == (409, "integration_revoked")


async def test_a_rotation_that_commits_while_a_group_waits_is_seen(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience)
    await source.deliver()

    async with audience_rival.holding(LOCK_MONTHS):
        delivering = await audience_rival.while_waiting(source.deliver())
        assert (await source.integration.change("secret")).status == 200

    assert (await delivering).status == 401


async def test_time_that_passes_while_a_group_waits_is_seen(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience, retention_days=1)
    await source.deliver()

    async with audience_rival.holding(LOCK_MONTHS):
        delivering = await audience_rival.while_waiting(source.deliver())
        audience.clock.advance(days=2)

    assert (await delivering).json["code"] == "proof_invalid"


async def test_a_secret_that_does_not_open_is_an_internal_error(audience: AudienceApi, audience_rival: Rival) -> None:
    """And it does not delay anybody else's events."""
    broken, sound = await make_publisher(audience), await make_publisher(audience)
    await audience_rival.run(
        "UPDATE integrations SET sealed_secret = %s WHERE id = %s", b"broken", broken.integration.id
    )

    answers = await asyncio.gather(broken.deliver(), sound.deliver())

    assert [answer.status for answer in answers] == [500, 201]


async def test_what_nobody_foresaw_is_answered_and_logged_with_the_ids_by_which_it_is_found(
    audience: AudienceApi,
) -> None:
    with structlog.testing.capture_logs() as logged:
        begin, end = await deliver_messages(
            audience, [], (b"traceparent", f"00-{TRACE_ID}-00f067aa0ba902b7-00".encode())
        )

    assert begin["status"] == 500
    (noted,) = (entry for entry in logged if entry["event"] == "internal_error")
    assert (noted["request_id"], noted["trace_id"]) == (json.loads(end["body"])["request_id"], TRACE_ID)


async def test_unsigned_events_do_not_wait_for_locks(audience: AudienceApi, audience_rival: Rival) -> None:
    """An event without a valid signature never reaches a transaction."""
    source = await make_publisher(audience)
    await source.deliver()

    async with audience_rival.holding(LOCK_MONTHS):
        answer = await source.deliver(source.event(), **{"X-Svc-Signature": "sha256=" + "0" * 64})

    assert answer.status == 401
