"""Several processes on one database, and one that dies: answered events are stored, and none is stored twice."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest
from support.audience.client import (
    CREDENTIAL,
    MASTER_KEY,
    AudienceApi,
    audience_settings,
    entitlement_body,
    running_audience,
)
from support.audience.event_publisher import Publisher, make_publisher
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock

from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.server.sockets import reserve_port

TESTS = Path(__file__).parents[2]
CONNECTIONS = 32
EVENTS = 2_000
KILLS = 2


@pytest.fixture
async def second(audience_url: Secret, audience: AudienceApi) -> AsyncIterator[AudienceApi]:
    """Another Audience on the same database."""
    async with running_audience(audience_settings(audience_url), audience.clock) as api:
        yield api


async def test_the_same_event_in_two_processes_is_recorded_once(
    audience: AudienceApi, second: AudienceApi, audience_rival: Rival
) -> None:
    source = await make_publisher(audience, mode="contract", entitlement=entitlement_body())
    bodies = [json.dumps(source.event()).encode() for _ in range(40)]

    answers = await asyncio.gather(*(source.deliver(body, api=api) for body in bodies for api in (audience, second)))

    assert Counter(answer.status for answer in answers) == {201: 40, 200: 40}
    assert await audience_rival.rows("SELECT count(*), (SELECT sum(events)::int FROM event_months) FROM events") == [
        (40, 40)
    ]
    assert await audience_rival.rows("SELECT event_replays FROM integrity_days") == [(40,)]


async def test_two_processes_that_wait_for_one_lock_record_an_event_once(
    audience: AudienceApi, second: AudienceApi, audience_rival: Rival
) -> None:
    """Both are in the middle of their group when the other commits."""
    source = await make_publisher(audience)
    await source.deliver()
    await source.deliver(api=second)
    body = json.dumps(source.event()).encode()

    async with audience_rival.holding("SELECT * FROM event_months FOR UPDATE"):
        delivering = [asyncio.create_task(source.deliver(body, api=api)) for api in (audience, second)]
        await audience_rival.until_someone_waits(2)

    answers = await asyncio.gather(*delivering)
    assert sorted(answer.status for answer in answers) == [200, 201]


async def test_two_processes_share_a_quota(audience: AudienceApi, second: AudienceApi, audience_rival: Rival) -> None:
    source = await make_publisher(audience, mode="contract", entitlement=entitlement_body(monthly_event_quota=30))

    answers = await asyncio.gather(*(source.deliver(api=api) for _ in range(25) for api in (audience, second)))

    assert Counter(answer.status for answer in answers) == {201: 30, 429: 20}
    assert await audience_rival.rows("SELECT count(*) FROM events") == [(30,)]


async def test_at_the_turn_of_a_month_an_event_is_recorded_once(audience_url: Secret, audience_rival: Rival) -> None:
    """Two processes whose clocks are in different months lock different rows, and still agree."""
    early, late = FakeClock(), FakeClock()
    now = early.freeze().replace(day=1, hour=0, minute=0, second=0)
    early.frozen_at = late.frozen_at = now
    early.advance(milliseconds=-1)
    settings = audience_settings(audience_url)
    async with running_audience(settings, early) as before, running_audience(settings, late) as after:
        source = await make_publisher(before, mode="contract", entitlement=entitlement_body())
        await source.deliver(api=before)
        await source.deliver(api=after)
        body = json.dumps(source.event()).encode()
        async with audience_rival.holding("SELECT * FROM event_months FOR UPDATE"):
            delivering = [asyncio.create_task(source.deliver(body, api=api)) for api in (before, after)]
            await audience_rival.until_someone_waits(2)
        answers = await asyncio.gather(*delivering)

    assert sorted(answer.status for answer in answers) == [200, 201]
    assert await audience_rival.rows("SELECT count(*), (SELECT sum(events)::int FROM event_months) FROM events") == [
        (3, 3)
    ]


async def test_a_rotation_applies_in_the_other_process_at_once(audience: AudienceApi, second: AudienceApi) -> None:
    source = await make_publisher(audience)
    assert (await source.deliver(api=second)).status == 201
    body = json.dumps(source.event()).encode()

    await source.integration.change("secret")

    assert (await source.deliver(body, api=second)).status == 401


@contextlib.contextmanager
def _process(url: Secret, port: int) -> Iterator[subprocess.Popen[bytes]]:
    environ = {
        **os.environ,
        "SOUNDMARK_AUDIENCE_DATABASE_URL": url.reveal(),
        "SOUNDMARK_AUDIENCE_CREDENTIAL": CREDENTIAL,
        "SOUNDMARK_MASTER_KEY": MASTER_KEY,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    process = subprocess.Popen([sys.executable, TESTS / "support/processes/serve_audience.py", str(port)], env=environ)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


async def _until_ready(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(httpx2.TransportError):
                if (await client.get("/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.05)


class _Delivering:
    """Connections that deliver each event until it is answered, and record each successful answer."""

    def __init__(self, source: Publisher, client: httpx2.AsyncClient, bodies: list[bytes]) -> None:
        self.source = source
        self.client = client
        self.waiting = list(enumerate(bodies))
        self.recorded: set[int] = set()
        self.answered: Counter[int] = Counter()
        self.broken_count = 0
        self.is_there = asyncio.Event()
        self.is_there.set()
        self._progress = asyncio.Condition()

    async def until_answered(self, count: int) -> None:
        """Wait for this many answered deliveries."""
        async with self._progress:
            await self._progress.wait_for(lambda: self.answered.total() >= count)

    async def run(self) -> None:
        await asyncio.gather(*(self._connection() for _ in range(CONNECTIONS)))

    async def _connection(self) -> None:
        while self.waiting:
            number, body = self.waiting.pop()
            headers = {"Content-Type": "application/json", "X-Svc-Signature": self.source.signature(body)}
            try:
                answer = await self.client.post("/v1/events", content=body, headers=headers)
            except httpx2.TransportError:
                # The process is gone, and it is unknown whether it had committed: deliver again.
                self.broken_count += 1
                self.waiting.append((number, body))
                await self.is_there.wait()
                continue
            assert answer.status_code in {200, 201}, answer.text
            self.answered[answer.status_code] += 1
            if answer.status_code == 201:
                assert number not in self.recorded, "an event was recorded twice"
                self.recorded.add(number)
            async with self._progress:
                self._progress.notify_all()


@pytest.mark.timeout(300)  # Three processes start, on a machine that is busy with other things.
async def test_events_answered_by_a_killed_process_are_stored_once(
    audience: AudienceApi, audience_url: Secret, audience_rival: Rival
) -> None:
    """kill -9, twice, amid thousands of events; the publisher repeats each unanswered delivery."""
    source = await make_publisher(
        audience, mode="contract", entitlement=entitlement_body(monthly_event_quota=1_000_000)
    )
    source.api.clock.reset()
    bodies = [json.dumps(source.event()).encode() for _ in range(EVENTS)]
    limits = httpx2.Limits(max_connections=CONNECTIONS + 4)
    with reserve_port("127.0.0.1", 0) as sock, contextlib.ExitStack() as stack:
        port = sock.getsockname()[1]
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30, limits=limits) as client:
            process = stack.enter_context(_process(audience_url, port))
            await _until_ready(client)
            delivering = _Delivering(source, client, bodies)
            running = asyncio.create_task(delivering.run())
            for number in range(1, KILLS + 1):
                await delivering.until_answered(number * EVENTS // (KILLS + 1))
                # Everything answered so far is on disk, whatever happens to the process.
                answered = len(delivering.recorded)
                delivering.is_there.clear()
                process.send_signal(signal.SIGKILL)
                process.wait(10)
                [(stored,)] = await audience_rival.rows("SELECT count(*) FROM events")
                assert stored >= answered
                process = stack.enter_context(_process(audience_url, port))
                await _until_ready(client)
                delivering.is_there.set()
            await running

    assert delivering.broken_count > 0, "a process was killed under somebody's event"
    rows = await audience_rival.rows(
        "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM event_ids), (SELECT count(*) FROM spent_proofs),"
        " (SELECT sum(events)::int FROM event_months)"
    )
    assert rows == [(EVENTS,) * 4]
    # Events that were committed but not answered were reported as duplicates afterwards.
    assert delivering.answered[201] + delivering.answered[200] == EVENTS
    replays = await audience_rival.rows("SELECT coalesce(sum(event_replays), 0)::int FROM integrity_days")
    assert replays == [(delivering.answered[200],)]
