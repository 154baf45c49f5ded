"""The job that reads the release evidence, and the route that answers what it found."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from procrastinate import App
from procrastinate.testing import InMemoryConnector
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.api.core_settings import jobs_settings
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.release_evidence import GATES, PREVIEW, STABLE, insert_evidence, make_evidence

from soundmark.core.context import Context
from soundmark.core.features.platform.release import jobs
from soundmark.core.features.platform.release.jobs import read_evidence
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import SettingsInvalid
from soundmark.kit.text.timestamps import format_timestamp

ROUTE = "/v1/platform/release-readiness"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with the evidence of a release."""
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(make_evidence()))
    return path


def write(file: Path, content: str) -> None:
    file.write_text(content)


def remove(file: Path) -> None:
    file.unlink()


@contextlib.asynccontextmanager
async def running_worker(database_url: Secret, clock: FakeClock, **changes: str) -> AsyncIterator[Context]:
    async with make_worker(database_url, clock, **changes) as ctx:
        yield ctx
        for client in (ctx.cells, ctx.card, ctx.local, ctx.accounting):
            await client.aclose()
        await ctx.db.close()


@pytest.fixture
async def worker(database_url: Secret, clock: FakeClock, file: Path) -> AsyncIterator[Context]:
    """Core's worker."""
    async with running_worker(database_url, clock, RELEASE_EVIDENCE_PATH=str(file)) as ctx:
        yield ctx


async def answer_of(api: Api) -> Any:
    """Return the response's JSON, or its problem code."""
    answer = await api.get(ROUTE)
    return answer.json if answer.status == 200 else (answer.status, answer.code)


UNKNOWN = (503, "release_readiness_unavailable")


async def test_the_route_answers_what_the_worker_found(api: Api, worker: Context, clock: FakeClock, file: Path) -> None:
    now = clock.freeze()
    assert await answer_of(api) == UNKNOWN, "nothing was computed yet"
    assert await read_evidence(worker) is None
    gates = {gate: gate != "ios_acoustic" for gate in GATES}
    assert await answer_of(api) == {
        "computed_at": format_timestamp(now),
        "preview": PREVIEW,
        "gates": gates,
        "stable": None,
    }
    write(file, json.dumps(make_evidence(gates=dict.fromkeys(GATES, True), stable=STABLE)))
    assert (await answer_of(api))["stable"] is None, "until the worker reads it"
    await read_evidence(worker)
    assert (await answer_of(api))["stable"] == STABLE


async def test_it_is_known_for_ten_minutes(api: Api, worker: Context, clock: FakeClock) -> None:
    clock.freeze()
    await read_evidence(worker)
    clock.advance(minutes=10)
    assert (await answer_of(api))["preview"] == PREVIEW
    clock.advance(milliseconds=1)
    assert await answer_of(api) == UNKNOWN
    await read_evidence(worker)
    assert (await answer_of(api))["preview"] == PREVIEW
    clock.advance(minutes=-11)
    assert await answer_of(api) == UNKNOWN, "the clock was set back: the time of reading means nothing"


async def test_a_finding_replaces_the_evidence_before_it(api: Api, worker: Context, rival: Rival, file: Path) -> None:
    await read_evidence(worker)
    content = json.dumps(make_evidence())
    for broken, finding in (
        ("", "malformed"),
        (json.dumps(make_evidence(stable=STABLE)), "asymmetric"),
        (content.ljust(1024 * 1024), "too_large"),
    ):
        write(file, broken)
        assert await read_evidence(worker) == finding
        assert await answer_of(api) == UNKNOWN
        assert await rival.rows("SELECT evidence, finding FROM release_readiness") == [(None, finding)]
    remove(file)
    assert await read_evidence(worker) == "missing"
    assert await answer_of(api) == UNKNOWN
    write(file, content)
    assert await read_evidence(worker) is None
    assert (await answer_of(api))["preview"] == PREVIEW


async def test_without_a_file_nothing_is_known_and_nothing_is_wrong(
    api: Api, database_url: Secret, clock: FakeClock
) -> None:
    async with running_worker(database_url, clock) as worker:
        with capture_logs() as logged:
            assert await read_evidence(worker) == "not_configured"
    assert await answer_of(api) == UNKNOWN
    assert logged == []


async def test_each_finding_is_logged_once(worker: Context, file: Path) -> None:
    """A worker that starts again repeats nothing either, since the finding is in the database."""
    with capture_logs() as logged:
        await read_evidence(worker)
        for content in ("{}", "{}", json.dumps(make_evidence(stable=STABLE)), json.dumps(make_evidence())):
            write(file, content)
            await read_evidence(worker)
    assert [(line["event"], line.get("finding")) for line in logged] == [
        ("release_evidence_unusable", "malformed"),
        ("release_evidence_unusable", "asymmetric"),
        ("release_evidence_usable", None),
    ]


@pytest.mark.parametrize(
    "altered", ["{}", json.dumps(make_evidence(stable=STABLE)), json.dumps({**make_evidence(), "key": "secret"})]
)
async def test_an_altered_row_is_not_published(api: Api, rival: Rival, clock: FakeClock, altered: str) -> None:
    await insert_evidence(rival, clock.now(), altered)
    assert await answer_of(api) == UNKNOWN


async def test_the_worker_reads_it_every_five_minutes(worker: Context, rival: Rival) -> None:
    app = App(connector=InMemoryConnector())
    jobs.add_tasks(app, worker)
    periods = {task.task.name: task.cron for task in app.periodic_registry.periodic_tasks.values()}
    assert periods == {"read_release_evidence": "*/5 * * * *"}
    await app.tasks["read_release_evidence"](timestamp=0)
    assert await rival.rows("SELECT finding FROM release_readiness") == [(None,)]


async def test_two_workers_take_turns(worker: Context, rival: Rival, file: Path) -> None:
    """Both read; the second one finds what the first stored, and does not report it again."""
    await read_evidence(worker)
    write(file, "{}")
    statement = "UPDATE release_readiness SET evidence = NULL, finding = 'malformed'"
    with capture_logs() as logged:
        async with rival.committing(statement):
            waiting = await rival.while_waiting(read_evidence(worker))
        assert await waiting == "malformed"
    assert logged == []


@pytest.mark.parametrize("path", ["evidence.json", "./evidence.json"])
def test_the_path_is_absolute(path: str) -> None:
    with pytest.raises(SettingsInvalid) as invalid:
        jobs_settings(Secret("postgresql://h/d"), RELEASE_EVIDENCE_PATH=path)
    assert invalid.value.faults == ["SOUNDMARK_RELEASE_EVIDENCE_PATH: must be an absolute path"]
