"""`soundmark hear`: a receiver at the terminal."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from soundmark_sdk import Frame, MicrophoneUnavailable, Receiver, ReceiverFailure, hear, listen

from soundmark.cli.outcome import Refused

app = typer.Typer(add_completion=False)


@app.command("hear")
def hear_command(
    file: Annotated[Path | None, typer.Argument(help="A WAV recording.")] = None,
    microphone: Annotated[bool, typer.Option("--microphone", help="Listen until a Code is heard.")] = False,
    base_url: Annotated[str, typer.Option(help="Where to resolve.")] = "http://127.0.0.1:8080",
) -> None:
    """Decode a sound, resolve and verify it, show the intent; status 0 only with a verified intent."""
    if (file is None) == (not microphone):
        raise typer.BadParameter("give either a recording or --microphone")
    frame = _first(listen() if file is None else _recorded(file))
    typer.echo(f"heard {frame.text}")
    try:
        with Receiver(base_url) as receiver:
            resolution = receiver.resolve(frame.token)
    except (ReceiverFailure, ValueError) as failure:
        raise Refused(f"no verified intent: {getattr(failure, 'reason', failure)}") from None
    intent = {
        "type": resolution.intent.type,
        "action": resolution.intent.action,
        "resource": dict(resolution.intent.resource),
    }
    typer.echo(f"verified {resolution.xr_id}, signed by {resolution.key_id}")
    typer.echo(json.dumps(intent, ensure_ascii=False, indent=2))


def _recorded(file: Path) -> list[Frame]:
    try:
        return hear(file)
    except (OSError, ValueError) as error:
        raise Refused(f"{file} cannot be heard: {error}") from None


def _first(frames: Iterable[Frame]) -> Frame:
    try:
        for frame in frames:
            return frame
    except MicrophoneUnavailable as error:
        raise Refused(str(error)) from None
    raise Refused("no Code was heard")
