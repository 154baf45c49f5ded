"""`GET /v1/platform/jobs` and `POST /v1/platform/jobs/{job_id}/retry`: what the worker could not do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from procrastinate import App
from structlog.testing import capture_logs
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People

from soundmark.core.problems import JobNotFound, JobWaiting
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.jobs import UNTIL_DONE, jobs_app

PATH = "/v1/platform/jobs"
# In the arguments of every job; no answer and no log line may hold it.
PLANTED = "org_of-somebody-whom-nobody-may-name"
_HELD = "SELECT 1 FROM procrastinate_jobs WHERE id = %s FOR UPDATE"
ADMINISTRATOR = {"realm_access": {"roles": ["svc_platform_admin"]}}


class _Works:
    """A job's work, which fails until it is mended."""

    def __init__(self) -> None:
        self.is_broken = True
        self.runs_count = 0

    async def work(self, timestamp: int) -> None:  # noqa: ARG002 - as procrastinate passes it
        self.runs_count += 1
        if self.is_broken:
            raise RuntimeError(PLANTED)


@pytest.fixture
def works() -> _Works:
    """The work of a periodic job."""
    return _Works()


@pytest.fixture
async def worker(database_url: Secret, works: _Works) -> AsyncIterator[App]:
    """Core's queue, open, with a periodic job, whose runs the test queues, and a queued one that is never done."""
    app = jobs_app(database_url, application_name="tests")
    app.task(name="forget_mail_counts", queueing_lock="forget_mail_counts")(works.work)

    async def run(**_: str) -> None:
        raise RuntimeError(PLANTED)

    app.task(name="deliver_invitation", retry=UNTIL_DONE)(run)
    async with app.open_async() as opened:
        yield opened


async def run_jobs(worker: App) -> None:
    await worker.run_worker_async(wait=False, install_signal_handlers=False)


async def make_failed(worker: App) -> int:
    """Let the periodic job run now, and fail; return its id."""
    job_id = await worker.configure_task("forget_mail_counts", queueing_lock="forget_mail_counts").defer_async(
        timestamp=0
    )
    await run_jobs(worker)
    return job_id


async def list_ids(api: Api, **params: Any) -> list[str]:
    answer = await api.get(PATH, params=params)
    assert answer.status == 200, answer.body
    return [job["id"] for job in answer.json["data"]]


async def retry(api: Api, job_id: object) -> Answer:
    return await api.post(f"{PATH}/{job_id}/retry")


async def test_a_run_that_failed_is_listed_without_its_arguments(api: Api, worker: App) -> None:
    assert await list_ids(api) == []
    job_id = await make_failed(worker)
    answer = await api.get(PATH)
    (job,) = answer.json["data"]
    assert job.pop("failed_at") is not None
    assert job == {
        "id": str(job_id),
        "task": "forget_mail_counts",
        "state": "failed",
        "attempts": 1,
        "next_attempt_at": None,
    }
    assert await list_ids(api, state="retrying") == []


async def test_a_queued_job_that_failed_is_listed_with_its_next_attempt(api: Api, worker: App) -> None:
    job_id = await worker.configure_task("deliver_invitation").defer_async(organization_id=PLANTED)
    assert await list_ids(api, state="retrying") == [], "it has not run yet"
    await run_jobs(worker)
    answer = await api.get(PATH, params={"state": "retrying"})
    (job,) = answer.json["data"]
    assert (job["id"], job["state"], job["attempts"], job["failed_at"]) == (str(job_id), "retrying", 1, None)
    assert job["next_attempt_at"] is not None
    assert PLANTED not in answer.body.decode()
    assert await list_ids(api) == []


@pytest.mark.parametrize("status", ["todo", "doing", "succeeded", "cancelled", "aborted"])
async def test_jobs_that_have_not_failed_are_in_no_list(api: Api, rival: Rival, status: str) -> None:
    await rival.run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, status) VALUES ('default', 'x', %s)", status
    )
    assert await list_ids(api) == []
    assert await list_ids(api, state="retrying") == []


async def test_pages_hold_every_job_once_and_a_cursor_belongs_to_its_state(api: Api, rival: Rival) -> None:
    await rival.run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, status, attempts)"
        " SELECT 'default', 'x', CASE mod(number, 2) WHEN 0 THEN 'failed' ELSE 'todo' END::procrastinate_job_status, 1"
        "   FROM generate_series(1, 10) AS number"
    )
    found, cursor = [], None
    while True:
        answer = await api.get(PATH, params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        found += [int(job["id"]) for job in answer.json["data"]]
        cursor = answer.json["next_cursor"]
        if cursor is None:
            break
        refused = await api.get(PATH, params={"state": "retrying", "cursor": cursor})
        assert (refused.status, refused.code) == (422, "invalid_cursor")
    ids = await rival.rows("SELECT id FROM procrastinate_jobs WHERE status = 'failed' ORDER BY id DESC")
    assert found == [job_id for (job_id,) in ids]
    assert len(found) == 5


async def test_another_state_is_refused(api: Api) -> None:
    answer = await api.get(PATH, params={"state": "succeeded"})
    assert (answer.status, answer.code) == (422, "validation_failed")


async def test_a_failed_job_runs_again_and_is_then_in_no_list(api: Api, worker: App, works: _Works) -> None:
    job_id = await make_failed(worker)
    works.is_broken = False
    with capture_logs() as logs:
        retried = await retry(api, job_id)
    assert retried.status == 200
    assert retried.json == {
        "id": str(job_id),
        "task": "forget_mail_counts",
        "state": "retrying",
        "attempts": 1,
        "failed_at": None,
        "next_attempt_at": None,
    }
    (entry,) = [each for each in logs if each["event"] == "platform_job_retried"]
    assert (entry["job_id"], entry["task"], entry["subject_id"]) == (job_id, "forget_mail_counts", "operator")
    assert await list_ids(api, state="retrying") == [str(job_id)]
    await run_jobs(worker)
    assert works.runs_count == 2
    assert await list_ids(api) + await list_ids(api, state="retrying") == []


async def test_a_job_that_fails_again_is_listed_again(api: Api, worker: App, works: _Works) -> None:
    job_id = await make_failed(worker)
    assert (await retry(api, job_id)).status == 200
    await run_jobs(worker)
    answer = await api.get(PATH)
    assert [(job["id"], job["attempts"]) for job in answer.json["data"]] == [(str(job_id), 2)]
    assert works.runs_count == 2


async def test_a_repeated_retry_changes_nothing(api: Api, worker: App, works: _Works) -> None:
    job_id = await make_failed(worker)
    first = await retry(api, job_id)
    with capture_logs() as logs:
        again = await retry(api, job_id)
    assert (again.status, again.json) == (200, first.json)
    assert [each for each in logs if each["event"] == "platform_job_retried"] == []
    await run_jobs(worker)
    assert works.runs_count == 2


async def test_of_two_retries_at_once_one_lets_the_job_run(api: Api, worker: App, rival: Rival) -> None:
    job_id = await make_failed(worker)
    async with rival.holding(_HELD, job_id):
        both = [asyncio.create_task(retry(api, job_id)) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert [(await each).status for each in both] == [200, 200]
    assert await rival.rows("SELECT count(*) FROM procrastinate_events WHERE type = 'retried'") == [(1,)]


async def test_a_retry_that_is_cut_off_leaves_the_job_as_it_was(api: Api, worker: App, rival: Rival) -> None:
    job_id = await make_failed(worker)
    async with rival.holding(_HELD, job_id):
        cut_off = await rival.while_waiting(retry(api, job_id))
        await rival.kill_waiting_sessions()
        assert ((await cut_off).status, (await cut_off).code) == (503, "database_unavailable")
    assert await list_ids(api) == [str(job_id)]
    assert (await retry(api, job_id)).status == 200


async def test_a_job_whose_next_run_waits_is_not_queued_twice(api: Api, worker: App, works: _Works) -> None:
    job_id = await make_failed(worker)
    await worker.configure_task("forget_mail_counts", queueing_lock="forget_mail_counts").defer_async(timestamp=1)
    refused = await retry(api, job_id)
    assert (refused.status, refused.code) == (409, JobWaiting.code)
    assert await list_ids(api) == [str(job_id)]
    works.is_broken = False
    await run_jobs(worker)
    assert (await retry(api, job_id)).status == 200


@pytest.mark.parametrize("status", ["todo", "succeeded", "cancelled", "aborted"])
async def test_a_job_that_has_not_failed_is_not_found(api: Api, rival: Rival, status: str) -> None:
    await rival.run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, status) VALUES ('default', 'x', %s)", status
    )
    ((job_id,),) = await rival.rows("SELECT id FROM procrastinate_jobs")
    refused = await retry(api, job_id)
    assert (refused.status, refused.code) == (404, JobNotFound.code)
    assert await rival.rows("SELECT status::text FROM procrastinate_jobs") == [(status,)]


@pytest.mark.parametrize("job_id", ["0", "1", "01", "-1", "x", "9" * 19, "9" * 18, "１"])
async def test_an_id_of_no_job_is_not_found(api: Api, job_id: str) -> None:
    refused = await retry(api, job_id)
    assert (refused.status, refused.code) == (404, JobNotFound.code)


@pytest.mark.parametrize(
    ("claims", "code"), [({}, "platform_admin_required"), ({**ADMINISTRATOR, "acr": "1"}, "mfa_required")]
)
async def test_others_see_and_change_nothing(
    api: Api, people: People, worker: App, claims: dict[str, Any], code: str
) -> None:
    job_id = await make_failed(worker)
    ada = people.person("ada", **claims)
    for answer in (await ada.get(PATH), await retry(ada, job_id)):
        assert (answer.status, answer.code) == (403, code)
    assert await list_ids(api) == [str(job_id)]
