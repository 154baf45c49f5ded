"""`soundmark mix`: a Code into a programme, with its certificate."""

import itertools
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import typer

from soundmark.audio.synthesis import FRAME_PATTERN
from soundmark.cli import Refused
from soundmark.cli.api import open_client, show_facts, show_json
from soundmark.cli.intents import printable
from soundmark.cli.mastering import (
    CertificateFile,
    Codecs,
    check_outputs,
    describe,
    explaining,
    name_frames,
    opening,
    read_codecs,
    require_certifiable,
    save_certificates,
    show_certificate,
)
from soundmark.cli.options import Connection, Organization, command
from soundmark.studio.mastering.certificate import digest_file
from soundmark.studio.mastering.frame_tones import FrameTones, make_frame_tones
from soundmark.studio.mastering.mixing import LEVEL_LEAST_DB, Mixed, mix
from soundmark.studio.mastering.placing import GAP_S, NotPlaced, Place, find_best_place, list_places, predict_at
from soundmark.studio.mastering.programme import Programme
from soundmark.studio.mastering.repetitions import choose_channels

Protocol: TypeAlias = Literal[3, 4, 5]

app = typer.Typer(add_completion=False)
_LEVEL: Final = re.compile(r"([+-]?\d{1,3}(?:\.\d+)?)(?:dB)?", re.IGNORECASE)
_LEVELS_DB: Final = (2 * LEVEL_LEAST_DB, 12.0)
_TIME: Final = re.compile(r"(?:(?:(\d{1,3}):)?([0-5]?\d):)?(\d{1,6}(?:\.\d+)?)")
_RATE_HZ: Final = 48_000


@command(app, "mix")
def mix_command(
    programme: Annotated[Path, typer.Argument(metavar="PROGRAMME", help="WAV, BWF, RF64, BW64 or FLAC.")],
    *,
    code: Annotated[str | None, typer.Option("--code", metavar="XR_ID", help="The Code, from the service.")] = None,
    frame: Annotated[str | None, typer.Option("--frame", metavar="FRAME", help="The Code's frame: XRC1:brd_….")] = None,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            metavar="auto|dB",
            help="The Code's level against the whole programme, such as -12dB; auto: the lowest with a good margin.",
        ),
    ] = "auto",
    every: Annotated[
        float | None, typer.Option("--every", metavar="S", help="Once in each S seconds, where it is heard best.")
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="T,…", help="At these times: seconds, m:ss or h:mm:ss.")
    ] = None,
    protocol: Annotated[int, typer.Option("--protocol", min=3, max=5, help="3 slowest, 4, 5 fastest.")] = 4,
    codecs: Codecs = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write, in the programme's format.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as one line of JSON.")] = False,
    certificate: CertificateFile = None,
    organization: Organization = None,
    connection: Connection,
) -> None:
    """Mix a Code into a programme. Everything else in the file stays as it is, bit for bit.

    Without --every and --at, the Code is at the one place where it is heard best. FILE is written as a whole or not at
    all. Exit status 1 if the Code would clip, or if a repetition is not heard, also after a codec.
    """
    _check_usage(code, frame, every, at)
    check_outputs(programme, [out, certificate])
    level_db, chosen = _read_level(level), read_codecs(codecs)
    tones = _make_tones(code, frame, cast("Protocol", protocol), connection, organization)
    with opening(programme) as opened, explaining(programme):
        if opened.encoding in {"MP3", "OGG"}:
            raise Refused(f"{programme} is MP3 or Ogg: mix the Code into the programme before it is encoded")
        if opened.encoding is not None:
            raise Refused(
                f"nothing can be mixed into {programme} as its header describes it: rewrite the file first, "
                f"such as with ffmpeg -i {programme} NEW.{opened.encoding.lower()}"
            )
        try:
            places = _find_places(opened, tones, every, at)
            if certificate is not None:
                require_certifiable(len(places))
            mixed = mix(opened, tones, places, out, level_db=level_db, codecs=chosen)
        except NotPlaced as error:
            raise Refused(f"{programme}: {error}") from None
    _show(mixed, out, as_json=as_json)
    if certificate is not None:
        xr_ids = {tones.frame: code} if code is not None else name_frames([tones.frame], {}, connection)
        with opening(out) as written, explaining(certificate):
            saved = save_certificates(
                certificate, written, xr_ids, mixed.repetitions, mixed.codecs, connection, organization
            )
        typer.echo(printable(f"signed: {saved[0]}"), err=as_json)
    lost_count = sum(not each.is_heard for each in mixed.repetitions)
    lost_count += sum(len(each.repetitions) - each.heard_count for each in mixed.codecs)
    if lost_count:
        times = "once" if lost_count == 1 else f"{lost_count} times"
        raise Refused(f"{out} is written, but a receiver loses the Code {times}, codecs included")


def _check_usage(code: str | None, frame: str | None, every: float | None, at: str | None) -> None:
    """Raises: typer.BadParameter."""
    if (code is None) == (frame is None):
        raise typer.BadParameter("give either --code or --frame")
    if frame is not None and re.fullmatch(FRAME_PATTERN, frame) is None:
        raise typer.BadParameter("--frame must be XRC1:brd_ and 16 characters")
    if every is not None and at is not None:
        raise typer.BadParameter("give either --every or --at")


def _read_level(text: str) -> float | None:
    """Return the level in dB, None for `auto`.

    Raises: typer.BadParameter.
    """
    if text == "auto":
        return None
    match = _LEVEL.fullmatch(text.strip())
    if match is None or not _LEVELS_DB[0] <= float(match[1]) <= _LEVELS_DB[1]:
        raise typer.BadParameter(f"--level must be auto, or {_LEVELS_DB[0]:.0f}dB to {_LEVELS_DB[1]:.0f}dB")
    return float(match[1])


def _make_tones(
    code: str | None, frame: str | None, protocol: Protocol, connection: Connection, organization: str | None
) -> FrameTones:
    if frame is None:
        assert code is not None, "one of them was given"
        with open_client(connection, organization) as client:
            frame = client.codes.show(code).broadcast_frame
    return make_frame_tones(frame, protocol)


def _find_places(programme: Programme, tones: FrameTones, every: float | None, at: str | None) -> list[Place]:
    """Raises: typer.BadParameter; NotPlaced; NotReadable; OSError."""
    channels = choose_channels(programme.channel_count, programme.speakers)
    length_s = tones.length / _RATE_HZ + GAP_S
    if at is not None:
        times = [_read_time(text) for text in at.split(",")]
        if any(later - earlier < length_s for earlier, later in itertools.pairwise(times)):
            raise typer.BadParameter(f"--at must be ascending times that are {length_s:.2f} s or more apart")
        return [predict_at(programme, channels, tones, round(each * programme.sample_rate)) for each in times]
    if every is not None:
        if not every >= length_s:  # Nor may it be NaN.
            raise typer.BadParameter(f"--every must be {length_s:.2f} s or more")
        return list(list_places(programme, channels, tones, every))
    best = find_best_place(programme, channels, tones, 0.0, programme.duration_s)
    return [] if best is None else [best]


def _read_time(text: str) -> float:
    """Raises: typer.BadParameter."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"--at: {text!r} is no time like 90, 1:30 or 0:01:30.5")
    return 3600 * int(match[1] or 0) + 60 * int(match[2] or 0) + float(match[3])


def _show(mixed: Mixed, out: Path, *, as_json: bool) -> None:
    if as_json:
        facts: dict[str, Any] = {
            "file": out.name,
            "file_sha256": digest_file(out),
            "level_db": mixed.level_db,
            "loudness_lufs": {"before": mixed.before.loudness_lufs, "after": mixed.after.loudness_lufs},
            "true_peak_dbtp": {"before": mixed.before.peak_dbtp, "after": mixed.after.peak_dbtp},
        }
        show_json({**facts, **describe(mixed.repetitions, mixed.codecs)})
        return
    show_certificate(mixed.repetitions, mixed.codecs)
    show_facts(
        [
            ("File", out),
            ("Level", f"{mixed.level_db:g} dB against the programme"),
            ("Loudness", _write_change(mixed.before.loudness_lufs, mixed.after.loudness_lufs, "LUFS")),
            ("True peak", _write_change(mixed.before.peak_dbtp, mixed.after.peak_dbtp, "dBTP")),
        ]
    )


def _write_change(before: float | None, after: float | None, unit: str) -> str:
    return " → ".join("silence" if value is None else f"{value:.1f} {unit}" for value in (before, after))
