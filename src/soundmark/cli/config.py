"""`soundmark config`: check the settings in the environment."""

import os
from typing import Annotated

import typer

from soundmark import settings
from soundmark.cli.outcome import Refused
from soundmark.kit.settings import SettingsInvalid

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def config() -> None:
    """Check the settings in the environment."""


@app.command()
def check(
    component: Annotated[
        settings.Component | None, typer.Argument(help="The component to check for; all of them when not given.")
    ] = None,
) -> None:
    """Name every wrong, missing or unknown setting at once; `ok` and status 0 when there is none.

    This is for components that run one by one: `soundmark up` needs no setting.
    """
    chosen = settings.COMPONENTS if component is None else {component: settings.COMPONENTS[component]}
    faults: dict[str, None] = {}  # Each fault once, in order: components share settings.
    for model in chosen.values():
        try:
            settings.read(model, os.environ)
        except SettingsInvalid as invalid:
            faults.update(dict.fromkeys(invalid.faults))
    for fault in faults:
        typer.echo(fault, err=True)
    if faults:
        raise Refused(f"{len(faults)} setting{'s are' if len(faults) > 1 else ' is'} wrong or missing")
    typer.echo("ok")
