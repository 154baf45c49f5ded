"""`soundmark work`: run the background jobs of one component."""

import asyncio
import importlib
import os
from typing import Annotated, Any

import typer

import soundmark
from soundmark import settings
from soundmark.cli import Refused
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.kit import log
from soundmark.kit.postgres.jobs import WorkerFailed
from soundmark.kit.tracing.switch import recording_spans

app = typer.Typer(add_completion=False)


@app.command()
def work(
    component: Annotated[settings.WithDatabase, typer.Argument(help="The component whose jobs to run.")],
    data_dir: DataDir = None,
) -> None:
    """Run the background jobs of one component until Ctrl-C or SIGTERM.

    If the database goes away, the command tries it again for a minute and then exits with status 1, so run it under a
    supervisor that restarts it.
    """
    given = read_settings(settings.JOBS[component], data_dir)
    log.configure(level=given.log_level, log_format=given.log_format, component=f"{component}-jobs")
    try:
        with recording_spans(f"soundmark-{component}-jobs", soundmark.__version__, os.environ):
            asyncio.run(_run(component, given))
    except WorkerFailed as failed:
        raise Refused(f"the jobs of {component} stopped: {failed}") from None


async def _run(component: settings.WithDatabase, given: Any) -> None:
    # Imported by name when it is needed, so that a process loads no other component.
    await importlib.import_module(f"soundmark.{component}.worker").run(given)
