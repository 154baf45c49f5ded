"""Replays of each kind: answered and counted, but never counted as measurements."""

import asyncio
import json
from collections import Counter
from typing import Any

from support.api.core_client import Answer
from support.audience.client import AudienceApi, entitlement_body
from support.audience.event_publisher import Publisher, make_publisher, new_id
from support.database.rival import Rival

STORM = 60
NO_SIGNALS: list[Any] = []


async def signals(rival: Rival) -> list[Any]:
    return await rival.rows("SELECT event_replays, code_token_duplicates, proof_replays FROM integrity_days")


async def counted(rival: Rival) -> tuple[int, int, int, int]:
    """Return the numbers of events, event ids and spent proofs, and the month's count."""
    [row] = await rival.rows(
        "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM event_ids), (SELECT count(*) FROM spent_proofs),"
        " (SELECT coalesce(sum(events), 0)::int FROM event_months)"
    )
    events, ids, proofs, months = row
    return events, ids, proofs, months


async def storm(source: Publisher, events: list[Any]) -> Counter[tuple[int, str]]:
    answers = await asyncio.gather(*(source.deliver(event) for event in events))
    return Counter(map(status_of, answers))


def status_of(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.json.get("status") if answer.status < 300 else answer.json["code"]


async def test_an_exact_replay_is_a_duplicate_and_counted(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()

    first, second = await source.deliver(body), await source.deliver(body)

    assert (status_of(first), status_of(second)) == ((201, "recorded"), (200, "duplicate"))
    assert second.json["event_id"] == first.json["event_id"]
    assert await signals(audience_rival) == [(1, 0, 0)]
    assert await counted(audience_rival) == (1, 1, 1, 1)


async def test_the_same_event_id_with_other_bytes_is_a_conflict(audience: AudienceApi, audience_rival: Rival) -> None:
    """And it is no signal: a mistake, not a replay. One space is enough to make other bytes."""
    source = await make_publisher(audience)
    event = source.event()
    await source.deliver(event)

    for body in (
        {**event, "country": "DE"},
        source.event(event_id=event["event_id"]),
        json.dumps(event, indent=1).encode(),
    ):
        answer = await source.deliver(body)
        assert status_of(answer) == (409, "event_conflict")

    assert await signals(audience_rival) == NO_SIGNALS
    assert await counted(audience_rival) == (1, 1, 1, 1)


async def test_a_conflict_spends_nothing(audience: AudienceApi) -> None:
    source = await make_publisher(audience)
    event = source.event()
    await source.deliver(event)
    other = source.event(event_id=event["event_id"])

    await source.deliver(other)

    assert (await source.deliver(source.event(proof=other["proof"]))).status == 201


async def test_a_spent_proof_is_refused_and_counted(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    proof = source.proof()
    await source.deliver(source.event(proof=proof))
    other = source.event(proof=proof)

    assert status_of(await source.deliver(other)) == (409, "proof_replayed")
    assert status_of(await source.deliver(other)) == (409, "proof_replayed"), "its event id was not spent"
    assert await signals(audience_rival) == [(0, 0, 2)]
    assert await counted(audience_rival) == (1, 1, 1, 1)


async def test_a_proof_before_proof_ids_is_spent_by_its_content(audience: AudienceApi, audience_rival: Rival) -> None:
    """Otherwise another signature over the same content would be another proof."""
    source = await make_publisher(audience)
    await audience_rival.run("UPDATE proof_transition SET began_at = %s", audience.clock.now())
    proof = source.proof(without="proof_id")

    assert (await source.deliver(source.event(proof=proof))).status == 201
    assert status_of(await source.deliver(source.event(proof=proof))) == (409, "proof_replayed")


async def test_a_code_and_a_token_count_once_a_day(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    event = source.event()
    await source.deliver(event)
    pair = source.event(measurement_token=event["measurement_token"])

    first, retry = await source.deliver(pair), await source.deliver(pair)

    assert (status_of(first), status_of(retry)) == ((200, "duplicate"), (200, "duplicate"))
    assert first.json["event_id"] == pair["event_id"]
    # It spent its event id and its proof: its retry is an exact replay, and no other event may use its proof.
    assert await signals(audience_rival) == [(1, 1, 0)]
    assert status_of(await source.deliver(source.event(proof=pair["proof"]))) == (409, "proof_replayed")
    assert await counted(audience_rival) == (1, 2, 2, 1)


async def test_the_same_token_counts_for_another_code_and_on_another_day(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience)
    token = new_id("mt_", 32)
    await source.deliver(source.event(measurement_token=token))

    source.xr_id = new_id("xr_")
    assert (await source.deliver(source.event(measurement_token=token))).status == 201
    audience.clock.advance(days=1)
    assert (await source.deliver(source.event(measurement_token=token))).status == 201

    assert await signals(audience_rival) == NO_SIGNALS


async def test_signals_belong_to_the_day_of_receipt(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()
    happened = audience.clock.now().date()
    await source.deliver(body)
    audience.clock.advance(days=2)
    received = audience.clock.now().date()

    await source.deliver(body)

    assert await audience_rival.rows("SELECT day, event_replays FROM integrity_days") == [(received, 1)]
    assert await audience_rival.rows("SELECT day FROM events") == [(happened,)]


async def test_unverified_events_are_not_counted(audience: AudienceApi, audience_rival: Rival) -> None:
    """Neither without the publisher's signature nor without Core's."""
    source = await make_publisher(audience)
    event = source.event()
    await source.deliver(event)

    await source.deliver(event, **{"X-Svc-Signature": "sha256=" + "0" * 64})
    await source.deliver({**event, "proof": {**event["proof"], "signature": "A" * 86}})

    assert await signals(audience_rival) == NO_SIGNALS


async def test_a_storm_of_exact_replays_is_counted_exactly(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    body = json.dumps(source.event()).encode()

    answers = await storm(source, [body] * STORM)

    assert answers == {(201, "recorded"): 1, (200, "duplicate"): STORM - 1}
    assert await signals(audience_rival) == [(STORM - 1, 0, 0)]
    assert await counted(audience_rival) == (1, 1, 1, 1)


async def test_a_storm_of_pairs_is_counted_exactly(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    token = new_id("mt_", 32)

    answers = await storm(source, [source.event(measurement_token=token) for _ in range(STORM)])

    assert answers == {(201, "recorded"): 1, (200, "duplicate"): STORM - 1}
    assert await signals(audience_rival) == [(0, STORM - 1, 0)]
    assert await counted(audience_rival) == (1, STORM, STORM, 1)


async def test_a_storm_of_one_proof_is_counted_exactly(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience)
    proof = source.proof()

    answers = await storm(source, [source.event(proof=proof) for _ in range(STORM)])

    assert answers == {(201, "recorded"): 1, (409, "proof_replayed"): STORM - 1}
    assert await signals(audience_rival) == [(0, 0, STORM - 1)]
    assert await counted(audience_rival) == (1, 1, 1, 1)


async def test_a_storm_of_one_event_id_with_many_bodies_records_one(
    audience: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience)
    event_id = new_id("evt_")

    answers = await storm(source, [source.event(event_id=event_id) for _ in range(STORM)])

    assert answers == {(201, "recorded"): 1, (409, "event_conflict"): STORM - 1}
    assert await counted(audience_rival) == (1, 1, 1, 1)


async def test_all_storms_at_once_and_honest_events_among_them(audience: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience, mode="contract", entitlement=entitlement_body())
    body, token, proof = json.dumps(source.event()).encode(), new_id("mt_", 32), source.proof()
    events: list[Any] = []
    for _ in range(STORM):
        events += [body, source.event(measurement_token=token), source.event(proof=proof), source.event()]

    answers = await storm(source, events)

    assert answers[201, "recorded"] == STORM + 3
    assert await signals(audience_rival) == [(STORM - 1, STORM - 1, STORM - 1)]
    assert await counted(audience_rival) == (STORM + 3, 2 * STORM + 2, 2 * STORM + 2, STORM + 3)
