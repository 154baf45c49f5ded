"""`soundmark work`: run the background jobs of one component."""

import asyncio
from typing import Annotated

import typer

from soundmark.cli.databases import WithDatabase, database_settings
from soundmark.cli.deployment import DataDir
from soundmark.cli.outcome import Refused
from soundmark.kit import log
from soundmark.kit.jobs import WorkerFailed, jobs_app, run_worker

app = typer.Typer(add_completion=False)


@app.command()
def work(
    component: Annotated[WithDatabase, typer.Argument(help="Whose jobs.")],
    data_dir: DataDir = None,
) -> None:
    """Run the background jobs of one component until Ctrl-C or SIGTERM.

    Ends with status 1 when the database goes away: whoever supervises it starts it again.
    """
    url, settings = database_settings(component, data_dir)
    log.configure(level=settings.log_level, log_format=settings.log_format, component=f"{component}-jobs")
    try:
        asyncio.run(run_worker(jobs_app(url, application_name=f"soundmark-{component}-jobs")))
    except WorkerFailed as failed:
        raise Refused(f"the jobs of {component} stopped: {failed}") from None
