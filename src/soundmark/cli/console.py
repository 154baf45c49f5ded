"""`soundmark console`: the console of a running `soundmark up`."""

from pathlib import Path
from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.embedded.cluster_location import find_home
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.supervision.data_dir import UP_FILE, DataDirRefused, read_up_file
from soundmark.supervision.readiness import healthz_probe
from soundmark.supervision.sign_in_link import make_sign_in_link, tickets_folder

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def console() -> None:
    """Sign in to the console of a running `soundmark up`."""


@app.command()
def link(
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="The data dir of the running `soundmark up`.")
    ] = Path(".soundmark"),
) -> None:
    """Print a link that signs the first visitor in as the operator, from this machine only, within an hour.

    With an identity provider there are no such links.
    """
    try:
        console_url = str(read_up_file(data_dir / UP_FILE)["console_url"])
    except DataDirRefused as refused:
        raise Refused(str(refused)) from None
    if not healthz_probe(console_url)():
        raise Refused(f"the console at {console_url} does not answer; is `soundmark up` running on {data_dir}?")
    path = data_dir.absolute()
    folder = tickets_folder(find_home(path), path)
    try:
        typer.echo(make_sign_in_link(console_url, folder, SystemClock(), SystemEntropy()))
    except FileNotFoundError:
        raise Refused("there are no sign-in links here: `soundmark up` printed at its start how to sign in") from None
    except OSError as error:
        raise Refused(f"{folder} cannot be written to: {error.strerror}") from None
