"""`soundmark scan`: hear a finished master, and certify each repetition."""

from pathlib import Path
from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.cli.api import show_json
from soundmark.cli.intents import printable
from soundmark.cli.mastering import (
    CertificateFile,
    Codecs,
    check_outputs,
    describe,
    explaining,
    find_frames,
    name_frames,
    opening,
    read_codecs,
    save_certificates,
    show_certificate,
)
from soundmark.cli.options import Connection, Organization, command
from soundmark.studio.mastering.certificate import digest_file
from soundmark.studio.mastering.codecs import try_codecs
from soundmark.studio.mastering.margins import FAIR_DB
from soundmark.studio.mastering.scanning import scan

app = typer.Typer(add_completion=False)


@command(app, "scan")
def scan_command(
    master: Annotated[Path, typer.Argument(metavar="MASTER", help="WAV, BWF, RF64, BW64, FLAC, OGG or MP3.")],
    *,
    codecs: Codecs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as one line of JSON.")] = False,
    certificate: CertificateFile = None,
    code: Annotated[
        list[str] | None,
        typer.Option(
            "--code",
            metavar="XR_ID",
            help="With --certificate: a Code of yours in the master that cannot be resolved, because it expired or was "
            "revoked. Repeat it for more.",
        ),
    ] = None,
    organization: Organization = None,
    connection: Connection,
) -> None:
    """Hear a finished master of any length, and report each repetition of a Code with its margin.

    The margin is by how many decibels the noise around a Code may still rise: from 6 good, from 3 fair, below weak.
    Exit status 1 if nothing is heard, or if a repetition is weak or lost, also after a codec.
    """
    if code and certificate is None:
        raise typer.BadParameter("--code needs --certificate")
    check_outputs(master, [certificate])
    chosen = read_codecs(codecs)
    named = find_frames(code or (), connection, organization)
    with opening(master) as programme, explaining(master):
        repetitions = scan(programme)
        results = try_codecs(programme, repetitions, chosen) if repetitions else []
        if as_json:
            facts = {"file": master.name, "file_sha256": digest_file(master), "duration_s": programme.duration_s}
            show_json({**facts, **describe(repetitions, results)})
        elif repetitions:
            show_certificate(repetitions, results)
        if certificate is not None and repetitions:
            frames = list(dict.fromkeys(each.frame for each in repetitions))
            xr_ids = name_frames(frames, named, connection)
            for saved in save_certificates(
                certificate, programme, xr_ids, repetitions, results, connection, organization
            ):
                typer.echo(printable(f"signed: {saved}"), err=as_json)
    if not repetitions:
        raise Refused(f"no Code was heard in {master}")
    weak_count = sum(not each.is_heard or each.margin_db < FAIR_DB for each in repetitions)
    lost_count = sum(len(each.repetitions) - each.heard_count for each in results)
    if weak_count or lost_count:
        raise Refused(f"{weak_count} of {len(repetitions)} repetitions are weak or lost; codecs lose {lost_count}")
