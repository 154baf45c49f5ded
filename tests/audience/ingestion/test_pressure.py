"""More events than a batch or the queue holds, and their traces in the log and the metrics."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from prometheus_client import REGISTRY, generate_latest
from support.audience.client import AudienceApi, audience_settings, entitlement_body, running_audience
from support.audience.event_publisher import deliver_messages, make_publisher, new_id
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.audience.hot import group
from soundmark.audience.hot.group import GroupCommit
from soundmark.kit.crypto.secret import Secret

LOCK_MONTHS = "SELECT * FROM event_months FOR UPDATE"


async def test_more_events_than_a_batch_holds_are_recorded_in_several(
    audience_url: Secret, audience_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "_BATCH_MAX", 20)
    count = 50
    async with running_audience(audience_settings(audience_url), FakeClock()) as audience:
        source = await make_publisher(audience, mode="contract", entitlement=entitlement_body())
        await source.deliver()

        async with audience_rival.holding(LOCK_MONTHS):
            first = await audience_rival.while_waiting(source.deliver())
            rest = [asyncio.create_task(source.deliver()) for _ in range(count)]
            await asyncio.sleep(0)

        answers = [await first, *await asyncio.gather(*rest)]
    assert Counter(answer.status for answer in answers) == {201: count + 1}
    assert await audience_rival.rows("SELECT count(*), (SELECT sum(events)::int FROM event_months) FROM events") == [
        (count + 2, count + 2)
    ]


async def test_events_beyond_the_queues_limit_are_refused(
    audience_url: Secret, audience_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is bounded by memory before it is bounded by time."""
    monkeypatch.setattr(group, "_WAITING_MAX", 10)
    async with running_audience(audience_settings(audience_url), FakeClock()) as audience:
        source = await make_publisher(audience)
        await source.deliver()

        async with audience_rival.holding(LOCK_MONTHS):
            first = await audience_rival.while_waiting(source.deliver())
            rest = [asyncio.create_task(source.deliver()) for _ in range(15)]
            sent_away, _ = await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)

        answers = [await first, *await asyncio.gather(*rest)]
    assert Counter(answer.status for answer in answers) == {201: 11, 503: 5}
    assert {task.result().json["code"] for task in sent_away} == {"database_unavailable"}


async def test_what_a_process_remembers_is_bounded(
    audience_url: Secret, audience_rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Integrations, months and Codes are forgotten when they are too many, and read again when one is needed."""
    monkeypatch.setattr(group, "_REMEMBERED_MAX", 2)
    memories = {}

    def remember(self: GroupCommit, *arguments: Any) -> None:
        initialise(self, *arguments)
        memories.update(sources=self._sources, months=self._months, codes=self._codes)

    initialise = GroupCommit.__init__
    monkeypatch.setattr(GroupCommit, "__init__", remember)
    async with running_audience(audience_settings(audience_url), FakeClock()) as audience:
        sources = [await make_publisher(audience, organization_id=new_id("org_")) for _ in range(7)]
        for source in (*sources, *sources):
            assert (await source.deliver()).status == 201
            assert all(len(memory) <= 3 for memory in memories.values())

    assert all(memories.values())
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(14,)]


async def test_the_metrics_count_outcomes_and_name_nobody(audience: AudienceApi) -> None:
    source = await make_publisher(audience)

    def counted(outcome: str) -> float:
        return REGISTRY.get_sample_value("soundmark_events_total", {"outcome": outcome}) or 0.0

    outcomes = ("recorded", "duplicate", "unauthenticated", "proof_invalid", "malformed_json")
    before = {outcome: counted(outcome) for outcome in outcomes}
    event = source.event()
    body = json.dumps(event).encode()
    await source.deliver(body)
    await source.deliver(body)
    await source.deliver(body, **{"X-Svc-Signature": "nonsense"})
    await source.deliver({**source.event(), "proof": {**event["proof"], "signature": "A" * 86}})
    await source.deliver(b"{")

    assert {outcome: counted(outcome) - before[outcome] for outcome in outcomes} == dict.fromkeys(outcomes, 1)
    exposed = generate_latest().decode()
    for secret in (event["event_id"], event["measurement_token"], event["proof"]["proof_id"], source.integration.id):
        assert secret not in exposed


async def test_the_log_reports_a_fault_and_names_nobody(
    audience: AudienceApi, audience_rival: Rival, capsys: pytest.CaptureFixture[str]
) -> None:
    """PostgreSQL's message about a violated constraint contains the row: digests, and their integration."""
    source = await make_publisher(audience)
    await source.deliver()
    async with audience_rival.refusing("event_ids"):
        answer = await source.deliver()

    assert answer.status == 500
    lines = [line for line in capsys.readouterr().out.splitlines() if "group_failed" in line]
    assert len(lines) == 1
    assert "CheckViolation" in lines[0]
    assert "Failing row" not in lines[0]


async def test_a_sender_that_hangs_up_is_forgotten(audience: AudienceApi, audience_rival: Rival) -> None:
    """In the middle of its body: nothing is judged, and nothing is answered."""
    messages = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]

    assert await deliver_messages(audience, messages) == []
    assert await audience_rival.rows("SELECT count(*) FROM event_months") == [(0,)]


async def test_the_size_and_the_time_of_a_group_are_measured(audience: AudienceApi) -> None:
    def observed(name: str) -> float:
        return REGISTRY.get_sample_value(f"soundmark_events_group_{name}") or 0.0

    source = await make_publisher(audience)
    before = {name: observed(name) for name in ("size_count", "size_sum", "seconds_count", "seconds_sum")}

    assert (await source.deliver()).status == 201

    assert observed("size_count") == before["size_count"] + 1
    assert observed("size_sum") == before["size_sum"] + 1
    assert observed("seconds_count") == before["seconds_count"] + 1
    assert observed("seconds_sum") > before["seconds_sum"]
