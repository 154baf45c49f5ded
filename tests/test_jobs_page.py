"""docs/jobs.md lists every job of the workers, with its name and times."""

import re
from pathlib import Path
from typing import Any, Final, cast

from procrastinate import App

from soundmark.audience.features.retention import jobs as retention
from soundmark.core import worker
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.jobs import jobs_app

ROOT: Final = Path(__file__).parent.parent
PERIODIC, QUEUED, LOOPS = (ROOT / "docs" / "jobs.md").read_text("utf-8").split("\n## ")[1:]
LOOP: Final = re.compile(r'(?:running\(|create_task\([^\n]*name=)"([\w-]+)"')


def make_app() -> App:
    app = jobs_app(Secret("postgresql://"), application_name="tests")
    worker.add_tasks(app, cast("Any", None))
    retention.add_tasks(app, cast("Any", None))
    return app


def first_cells(section: str) -> list[str]:
    return re.findall(r"^\| `(.*?)` \|", section, re.MULTILINE)


def test_it_lists_every_periodic_job_with_its_times() -> None:
    listed = re.findall(r"^\| `(.*?)` \| `(.*?)` \|", PERIODIC, re.MULTILINE)
    found = [(task.task.name, task.cron) for task in make_app().periodic_registry.periodic_tasks.values()]
    assert sorted(listed) == sorted(found)


def test_it_lists_every_queued_job() -> None:
    ours = {name for name in make_app().tasks if "builtin" not in name}
    assert sorted(first_cells(QUEUED)) == sorted(ours - set(first_cells(PERIODIC)))


def test_it_lists_every_loop_of_core() -> None:
    sources = (path.read_text("utf-8") for path in (ROOT / "src" / "soundmark" / "core").rglob("*.py"))
    assert set(first_cells(LOOPS)) == {name for source in sources for name in LOOP.findall(source)}
