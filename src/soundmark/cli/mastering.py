"""What `soundmark mix` and `soundmark scan` share: codecs, and the certificate as a table, as JSON and signed."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from soundmark_sdk import Receiver, ReceiverFailure
from soundmark_sdk.client.saving import open_replacement

from soundmark.cli import Refused
from soundmark.cli.api import open_client, show_table
from soundmark.cli.intents import printable
from soundmark.cli.options import Connection
from soundmark.cli.secret_output import check_free
from soundmark.cli.service import find_service
from soundmark.studio.mastering.certificate import describe_measurement, digest_file
from soundmark.studio.mastering.codecs import Codec, CodecResult, CodecUnavailable, find_ffmpeg, parse_codec
from soundmark.studio.mastering.margins import grade
from soundmark.studio.mastering.programme import Programme, WouldClip, open_programme
from soundmark.studio.mastering.repetitions import Repetition
from soundmark.studio.mastering.wav_layout import NotReadable
from soundmark.wire.decode_certificate import REPETITIONS_MAX

Codecs = Annotated[
    str | None,
    typer.Option(
        "--codecs",
        metavar="CODEC,…",
        help="Encode and decode with ffmpeg, and hear again: mp3:192,aac:128,opus:96 (kbit/s), with a low-pass in Hz "
        "as mp3:128:20000. Also vorbis, mp2 and ac3.",
    ),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option("--certificate", metavar="FILE", help="Have the service sign what was measured, and save it here."),
]

_FRAME_PREFIX: Final = "XRC1:"
_FRAME_CHARS: Final = 6  # Of a token, which tell those of one master apart.


def read_codecs(text: str | None) -> list[Codec]:
    """Return the codecs of an option, after making sure that ffmpeg is there.

    Raises: typer.BadParameter; Refused.
    """
    if text is None:
        return []
    try:
        codecs = [parse_codec(each) for each in text.split(",")]
    except ValueError as error:
        raise typer.BadParameter(f"--codecs: {error}") from None
    with explaining(Path()):
        find_ffmpeg()
    return codecs


def check_outputs(source: Path, outputs: Iterable[Path | None]) -> None:
    """Refuse an output that would overwrite what is read or another output, and one that cannot be a file.

    Raises: typer.BadParameter; Refused.
    """
    given = [each for each in outputs if each is not None]
    if len({os.path.realpath(each) for each in [source, *given]}) <= len(given):
        raise typer.BadParameter("the files that are read and written must be different ones")
    for each in given:
        check_free(each, force=True)


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn what can go wrong with a programme in the block into one line.

    Raises: Refused.
    """
    try:
        yield
    except NotReadable as error:
        raise Refused(f"{path} cannot be read: {error}") from None
    except WouldClip as error:
        raise Refused(f"{error}; choose a lower --level, or lower the programme") from None
    except CodecUnavailable as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"{error.filename or path}: {error.strerror or error}") from None


@contextmanager
def opening(path: Path) -> Iterator[Programme]:
    """Yield an open programme, with what can go wrong in one line.

    Raises: Refused.
    """
    with explaining(path), open_programme(path) as programme:
        yield programme


def describe(repetitions: Sequence[Repetition], codecs: Sequence[CodecResult]) -> dict[str, Any]:
    """Return the members of the JSON output that say how well everything is heard."""
    return {
        "repetitions": [
            {
                "at_s": round(each.at_s, 3),
                "frame": each.frame,
                "protocol": each.protocol,
                "level_db": each.level_db,
                "margin_db": each.margin_db,
                "cutoff_hz": each.cutoff_hz,
                "heard": each.is_heard,
                "grade": grade(each.margin_db, is_heard=each.is_heard),
            }
            for each in repetitions
        ],
        "codecs": [
            {
                "name": each.codec.name,
                "setting": each.codec.setting,
                "heard": each.heard_count,
                "of": len(each.repetitions),
                "margin_db": min((one.margin_db for one in each.repetitions), default=None),
                "cutoff_hz": min((one.cutoff_hz for one in each.repetitions if one.cutoff_hz), default=None),
                "advice": each.advice,
            }
            for each in codecs
        ],
    }


def show_certificate(repetitions: Sequence[Repetition], codecs: Sequence[CodecResult]) -> None:
    """Print a line for each repetition, and one for each codec with the setting that would save it."""
    show_table(
        ("time", "protocol", "token", "level dB", "margin dB", "cut-off Hz", "grade"),
        [
            (
                format_time(each.at_s),
                each.protocol,
                f"{each.frame.removeprefix(_FRAME_PREFIX)[: 4 + _FRAME_CHARS]}…",
                each.level_db,
                each.margin_db,
                each.cutoff_hz,
                grade(each.margin_db, is_heard=each.is_heard),
            )
            for each in repetitions
        ],
    )
    for codec in describe((), codecs)["codecs"]:
        line = f"{codec['name']} {codec['setting']}: {codec['heard']} of {codec['of']} heard"
        if codec["cutoff_hz"] is not None:
            line += f", cut off at {codec['cutoff_hz']} Hz"
        typer.echo(line)
        if codec["advice"] is not None:
            typer.echo(f"  the encoder's low-pass removes the Code; open it: {codec['advice']}")


def format_time(seconds: float) -> str:
    """Return a time as h:mm:ss.s."""
    tenths = round(seconds * 10)
    return f"{tenths // 36_000}:{tenths // 600 % 60:02}:{tenths % 600 / 10:04.1f}"


def save_certificates(
    path: Path,
    programme: Programme,
    xr_ids: Mapping[str, str],
    repetitions: Sequence[Repetition],
    codecs: Sequence[CodecResult],
    connection: Connection,
    organization: str | None,
) -> list[Path]:
    """Have the service sign a certificate for each Code, save it, and return the files.

    `xr_ids` are those of the frames. If there are several, each file has its Code's id in its name.

    Raises: Refused.
    """
    counts = Counter(each.frame for each in repetitions)
    for frame in xr_ids:
        require_certifiable(counts[frame])
    targets = [
        path if len(xr_ids) == 1 else path.with_name(f"{path.stem}.{each}{path.suffix}") for each in xr_ids.values()
    ]
    check_outputs(programme.path, targets)
    digest = digest_file(programme.path)
    with open_client(connection, organization) as client:
        for (frame, xr_id), target in zip(xr_ids.items(), targets, strict=True):
            its_codecs = [
                CodecResult(each.codec, tuple(one for one in each.repetitions if one.frame == frame)) for each in codecs
            ]
            measured = describe_measurement(
                programme, digest, [each for each in repetitions if each.frame == frame], its_codecs
            )
            certificate = client.codes.certify(xr_id, measured)
            with open_replacement(target) as file:
                file.write(json.dumps(certificate.document, ensure_ascii=False).encode() + b"\n")
    return targets


def require_certifiable(count: int) -> None:
    """Raises: Refused if one certificate cannot hold so many repetitions of a Code."""
    if count > REPETITIONS_MAX:
        raise Refused(
            f"a certificate holds {REPETITIONS_MAX:,} repetitions of a Code, and these are {count:,}: leave "
            f"--certificate out, or divide the master"
        )


def find_frames(xr_ids: Sequence[str], connection: Connection, organization: str | None) -> dict[str, str]:
    """Return the id of each named Code by its frame.

    Raises: Refused.
    """
    if not xr_ids:
        return {}
    with open_client(connection, organization) as client:
        return {client.codes.show(xr_id).broadcast_frame: xr_id for xr_id in xr_ids}


def name_frames(frames: Sequence[str], named: Mapping[str, str], connection: Connection) -> dict[str, str]:
    """Return the id of the Code behind each frame: that of a named Code, or what the service resolves it to.

    Raises: Refused, also if a named Code has none of the frames.
    """
    found = dict(named)
    for frame, xr_id in named.items():
        if frame not in frames:
            raise Refused(f"no certificate: {printable(xr_id)} was not heard")
    with Receiver(find_service(connection).base_url) as receiver:
        for frame in frames:
            if frame in found:
                continue
            try:
                found[frame] = receiver.resolve(frame.removeprefix(_FRAME_PREFIX)).xr_id
            except ReceiverFailure as failure:
                raise Refused(f"no certificate for {frame}: {failure} Name the Code with --code XR_ID") from None
    return found
