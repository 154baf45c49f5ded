"""`soundmark hear`: a receiver at the terminal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, TypeVar

import typer
from soundmark_sdk import (
    CertificateRejected,
    Examination,
    Frame,
    Microphone,
    MicrophoneUnavailable,
    OfflinePack,
    OfflineResolution,
    Receiver,
    ReceiverFailure,
    examine,
    hear,
    listen,
    verify_offline_pack,
)
from soundmark_sdk.offline_pack import PACK_BYTES_MAX
from soundmark_sdk.recording import Recording

from soundmark.cli import Refused
from soundmark.cli.intents import format_intent, open_standard_input
from soundmark.cli.options import BaseUrl, Connection
from soundmark.cli.service import find_service
from soundmark.cli.verification_keys import KeysFile, fetch_keys, read_bounded, read_keys
from soundmark.kit.text.timestamps import format_timestamp

T = TypeVar("T")

_STANDARD_INPUT: Final = Path("-")

app = typer.Typer(add_completion=False)


@app.command("hear")
def hear_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A recording: WAV, FLAC, OGG (Vorbis, Opus or FLAC) or MP3; `-` is standard input.",
        ),
    ] = None,
    microphone: Annotated[bool, typer.Option("--microphone", help="Listen until a Code is heard.")] = False,
    base_url: BaseUrl = None,
    key_file: Annotated[  # noqa: ARG001 - as every command that calls the API: operations, "The command line"
        Path | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="Ignored: a receiver needs no key. Accepted because every command that calls the API takes it.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", metavar="DIR", help="The data dir of a running `soundmark up`. Default: .soundmark."
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Explain how well the recording was decoded, or why not: its level, clipping, the energy in the "
            "band that Codes use, and the frequency at which the recording is cut off.",
        ),
    ] = False,
    packs: Annotated[
        list[Path] | None,
        typer.Option(
            "--pack",
            metavar="FILE",
            help="An offline pack, which answers if the service cannot be reached (exit status 1). Repeat it for more, "
            "and give the older ones too: a Code that a newer pack leaves out is not shown.",
        ),
    ] = None,
    keys: KeysFile = None,
) -> None:
    """Decode a sound, resolve and verify it, and show the intent. Exit status 0 only with a verified intent.

    If a recording holds several Codes, each is shown, and each must verify. With --pack, the intent in a pack is shown
    while the service cannot be reached, with the time at which it was valid. It is not a verified intent, so the exit
    status is 1. Packs are verified with --keys, or with the service's keys.
    """
    if (file is None) == (not microphone):
        raise typer.BadParameter("give either a recording or --microphone")
    if microphone and explain:
        raise typer.BadParameter("--explain needs a recording")
    if keys is not None and not packs:
        raise typer.BadParameter("--keys needs --pack")
    address = find_service(Connection(base_url, data_dir=data_dir)).base_url
    with closing(_receiver(address, _read_packs(packs or [], keys, address))) as receiver:
        frames = _hear_file(file, explain=explain) if file is not None else _hear_microphone()
        failures = [failure for frame in frames if (failure := _show(receiver, frame))]
    if failures:
        raise Refused("; ".join(failures).replace(".; ", "; "))


def _show(receiver: Receiver, frame: Frame) -> str | None:
    """Show the intent behind a frame; return why it is not a verified one, or None.

    Source: operations, "The command line"; details, point A23: an answer from a pack is never verified.
    """
    typer.echo(f"heard {frame.text}")
    try:
        resolution = receiver.resolve(frame.token)
    except ReceiverFailure as failure:
        return f"no verified intent for {frame.text}: {failure}"
    if isinstance(resolution, OfflineResolution):
        as_of, until = format_timestamp(resolution.as_of), format_timestamp(resolution.valid_until)
        typer.echo(f"offline {resolution.xr_id}, from pack {resolution.pack_id}, signed by {resolution.key_id}")
        typer.echo(f"as of {as_of}, until {until}: the service cannot be reached; it may have been revoked since")
        refusal = f"no verified intent for {frame.text}: an offline pack answered, as of {as_of}"
    else:
        typer.echo(f"verified {resolution.xr_id}, signed by {resolution.key_id}")
        refusal = None
    typer.echo(format_intent(resolution.intent, indent=2))
    return refusal


def _receiver(base_url: str, packs: Iterable[OfflinePack]) -> Receiver:
    try:
        return Receiver(base_url, packs=packs)
    except ValueError as error:
        raise Refused(f"{base_url}: {error}") from None


def _read_packs(files: Sequence[Path], keys_file: Path | None, base_url: str) -> list[OfflinePack]:
    """Return the packs in files. Keys are needed for them alone.

    Raises: Refused.
    """
    if not files:
        return []
    try:
        keys = fetch_keys(base_url) if keys_file is None else read_keys(keys_file)
    except Refused as refused:
        if keys_file is not None:
            raise
        raise Refused(f"{refused} Without the service, --pack needs --keys") from None
    packs = []
    for file in files:
        try:
            packs.append(verify_offline_pack(read_bounded(file, PACK_BYTES_MAX), keys))
        except CertificateRejected as rejected:
            raise Refused(f"{file} is not genuine: {rejected}") from None
    return packs


def _hear_file(file: Path, *, explain: bool) -> Iterable[Frame]:
    frames: Iterable[Frame]
    if explain:
        examination = _read(file, examine)
        for line in _explain(examination):
            typer.echo(line)
        frames = examination.frames
    else:
        frames = _read(file, hear)
    if not frames:
        raise Refused(
            f"no Code was heard in {_name_file(file)}" + ("" if explain else "; run it with --explain to see why")
        )
    return frames


def _read(file: Path, use: Callable[[Recording], T]) -> T:
    source: Recording = open_standard_input() if file == _STANDARD_INPUT else file
    try:
        return use(source)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refused(f"{_name_file(file)} cannot be heard: {reason}") from None


def _name_file(file: Path) -> str:
    return "the recording from standard input" if file == _STANDARD_INPUT else str(file)


def _explain(examination: Examination) -> Iterator[str]:
    """Yield the measurements, then the findings, one on each line."""
    levels, markers, channels = examination.levels, examination.markers, examination.channel_count
    yield (
        f"recording       {examination.duration_s:.2f} s, {examination.sample_rate} Hz, "
        f"{channels} channel{'s' if channels > 1 else ''}"
    )
    yield f"level           peak {_decibels(levels.peak_dbfs)}, RMS {_decibels(levels.rms_dbfs)}"
    yield (
        f"15 to 19.5 kHz  {_decibels(levels.band_dbfs)} in its loudest second; then the band below has "
        f"{_decibels(levels.below_dbfs)}, the band above {_decibels(levels.above_dbfs)}"
    )
    if markers is not None:
        clear = f"clear beginnings: {markers.start_count}, clear ends: {markers.end_count}"
        yield f"frames          {len(examination.frames)} heard; {clear}"
    yield from (f"- {finding.sentence}" for finding in examination.findings)


def _decibels(level_dbfs: float | None) -> str:
    return "nothing" if level_dbfs is None else f"{level_dbfs:.0f} dBFS"


def _hear_microphone() -> Iterable[Frame]:
    try:
        microphone = Microphone()
        typer.echo("Listening. Ctrl-C stops.", err=True)
        return list(islice(listen(microphone), 1))
    except MicrophoneUnavailable as error:
        raise Refused(str(error)) from None
