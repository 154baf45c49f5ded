"""The jobs of Core's worker that failed, or that run again."""

import re
from html import unescape

import pytest
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

PATH = "/platform/jobs"


async def insert_job(rival: Rival, task: str, status: str = "failed", attempts: int = 1) -> str:
    await rival.run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, status, attempts, args)"
        " VALUES ('default', %s, %s, %s, '{\"organization_id\": \"org_MARKnobody\"}')",
        *(task, status, attempts),
    )
    ((job_id,),) = await rival.rows("SELECT max(id) FROM procrastinate_jobs")
    return str(job_id)


async def test_a_failed_job_is_shown_and_runs_again(operator: ConsoleClient, rival: Rival) -> None:
    job_id = await insert_job(rival, "forget_mail_counts")
    page = await operator.get(PATH)
    assert [code.text for code in page.find_all(".//tbody//th/code")] == ["forget_mail_counts", job_id]
    assert "org_MARKnobody" not in page.html
    assert page.find_all(".//thead//th")[-1].text == "Actions"
    action = f"{PATH}/{job_id}/retry"
    assert [form.get("action") for form in page.find_all(".//tbody//form")] == [action]

    after = await operator.follow(await operator.submit(action))

    assert "forget_mail_counts runs again within seconds." in after.text
    assert "There are none." in after.text
    assert await rival.rows("SELECT status::text FROM procrastinate_jobs") == [("todo",)]


async def test_jobs_that_run_again_are_shown_with_their_next_attempt(operator: ConsoleClient, rival: Rival) -> None:
    await insert_job(rival, "complete_ticket", "todo", 3)
    await rival.run("UPDATE procrastinate_jobs SET scheduled_at = now() + interval '1 minute'")
    await insert_job(rival, "make_draft_invoice", "doing", 1)

    page = await operator.get(f"{PATH}?state=retrying")

    rows = [" ".join("".join(row.itertext()).split()) for row in page.find_all(".//tbody/tr")]
    assert rows[0].endswith("1 as soon as a worker is free")
    assert "complete_ticket" in rows[1]
    assert page.find_all(".//tbody//time")
    assert not page.find_all(".//tbody//form")


async def test_the_status_counts_both(operator: ConsoleClient, rival: Rival) -> None:
    await insert_job(rival, "forget_mail_counts")
    await insert_job(rival, "complete_ticket", "todo", 3)
    await insert_job(rival, "complete_ticket", "todo", 3)

    page = await operator.get("/platform/status")

    tiles = page.find_all(".//dl[@class='tiles']/div")
    shown = [(link.get("href"), link.text, tile.get("class")) for tile in tiles[:2] for link in tile.findall("dd/a")]
    assert shown == [(PATH, "1", "tile tile-warn"), (f"{PATH}?state=retrying", "2", "tile")]


@pytest.mark.parametrize(("status", "code"), [(404, "job_not_found"), (409, "job_waiting")])
async def test_a_refused_retry_has_a_page(operator: ConsoleClient, status: int, code: str) -> None:
    operator.core.refuse("POST /v1/platform/jobs/7/retry", status, code)

    page = await operator.submit(f"{PATH}/7/retry")

    assert (page.status, page.trouble) == (status, code)


async def test_others_see_nothing(visitors: ConsoleClient, people: People, clock: FakeClock) -> None:
    visitors.sign_in_as(people, "ada", clock.now())

    page = await visitors.get(PATH)

    assert (page.status, page.trouble) == (403, "platform_admin_required")


async def test_ten_thousand_failed_jobs_are_reached_page_by_page(operator: ConsoleClient, rival: Rival) -> None:
    await rival.run(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, status, attempts)"
        " SELECT 'default', 'forget_mail_counts', 'failed', 1 FROM generate_series(1, 10000)"
    )
    path: str | None = PATH
    seen: list[str] = []
    while path is not None:
        html = (await operator.get(path)).html
        seen += re.findall(r'action="/platform/jobs/(\d+)/retry"', html)
        following = re.search(r'<a rel="next" href="([^"]+)"', html)
        path = None if following is None else unescape(following[1])
    assert len(seen) == len(set(seen)) == 10_000
