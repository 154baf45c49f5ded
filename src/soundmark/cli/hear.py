"""`soundmark hear`: a receiver at the terminal."""

from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from soundmark_sdk import Frame, Microphone, MicrophoneUnavailable, Receiver, ReceiverFailure, hear, listen

from soundmark.cli.intents import shown
from soundmark.cli.outcome import Refused

app = typer.Typer(add_completion=False)


@app.command("hear")
def hear_command(
    file: Annotated[Path | None, typer.Argument(metavar="FILE.wav", help="A WAV recording.")] = None,
    microphone: Annotated[bool, typer.Option("--microphone", help="Listen until a Code is heard.")] = False,
    base_url: Annotated[str, typer.Option(metavar="URL", help="Where to resolve.")] = "http://127.0.0.1:8080",
) -> None:
    """Decode a sound, resolve and verify it, show the intent; status 0 only with a verified intent.

    Of several Codes in a recording each is shown, and each must verify.
    """
    if (file is None) == (not microphone):
        raise typer.BadParameter("give either a recording or --microphone")
    with closing(_receiver(base_url)) as receiver:
        frames = _recorded(file) if file is not None else _first_heard()
        failures = [failure for frame in frames if (failure := _show(receiver, frame))]
    if failures:
        raise Refused("; ".join(failures))


def _show(receiver: Receiver, frame: Frame) -> str | None:
    """Show the intent behind a frame; why there is none, where there is none."""
    typer.echo(f"heard {frame.text}")
    try:
        resolution = receiver.resolve(frame.token)
    except ReceiverFailure as failure:
        return f"no verified intent for {frame.text}: {failure}"
    typer.echo(f"verified {resolution.xr_id}, signed by {resolution.key_id}")
    typer.echo(shown(resolution.intent, indent=2))
    return None


def _receiver(base_url: str) -> Receiver:
    try:
        return Receiver(base_url)
    except ValueError as error:
        raise Refused(f"{base_url}: {error}") from None


def _recorded(file: Path) -> list[Frame]:
    try:
        frames = hear(file)
    except (OSError, ValueError) as error:
        raise Refused(f"{file} cannot be heard: {getattr(error, 'strerror', None) or error}") from None
    if not frames:
        raise Refused(f"no Code was heard in {file}")
    return frames


def _first_heard() -> Iterable[Frame]:
    try:
        microphone = Microphone()
        typer.echo("Listening. Ctrl-C stops.", err=True)
        return list(islice(listen(microphone), 1))
    except MicrophoneUnavailable as error:
        raise Refused(str(error)) from None
