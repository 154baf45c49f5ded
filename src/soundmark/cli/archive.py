"""`soundmark archive`: verify what an organisation took with it, with or without the service."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import DownloadColumn
from soundmark_sdk import ArchiveRejected, KeySet, VerifiedArchive, verify_archive

from soundmark.cli import Refused
from soundmark.cli.api import make_label, progress_of, show_facts, show_json
from soundmark.cli.options import AsJson, Connection
from soundmark.cli.service import find_service
from soundmark.cli.verification_keys import KeysFile, check_key_options, fetch_keys, read_keys
from soundmark.kit.text.timestamps import format_timestamp

app = typer.Typer(add_completion=False, no_args_is_help=True)

ServiceOfKeys = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Verify with the keys of this service; no credential is needed."),
]
ServiceOfUp = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="DIR", help="Verify with the keys of the `soundmark up` that runs on this data dir."
    ),
]
_INSIDE = "the keys inside the file"


@app.callback()
def archive() -> None:
    """Verify an archive of an organisation or a project."""


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The archive.")],
    *,
    keys: KeysFile = None,
    base_url: ServiceOfKeys = None,
    data_dir: ServiceOfUp = None,
    as_json: AsJson = False,
) -> None:
    """Verify an archive: its seal, every record, and the signature of every Code.

    Exit status 0 if the whole archive is as the service sealed it. Exit status 1 if not; the error message names the
    first fault and its place. Without --keys, --base-url and --data-dir, the archive is verified with the keys inside
    the file, which shows that it is complete and consistent, but not who created it.
    """
    check_key_options(keys, base_url, data_dir)
    trusted: KeySet | None = None
    source = _INSIDE
    if keys is not None:
        trusted, source = read_keys(keys), f"the keys in {keys}"
    elif base_url is not None or data_dir is not None:
        address = find_service(Connection(base_url, data_dir=data_dir)).base_url
        trusted, source = fetch_keys(address), f"the keys of {address}"
    verified = _verify(file, trusted)
    if as_json:
        show_json(_describe(verified, source))
        return
    show_facts(_list_facts(verified, source))
    if trusted is None:
        typer.echo(f"verified with {_INSIDE}: it is consistent, but anyone could have created it", err=True)


def _verify(file: Path, keys: KeySet | None) -> VerifiedArchive:
    try:
        with progress_of(DownloadColumn()) as bar:
            task = bar.add_task("Verifying", total=None)
            return verify_archive(
                file, keys, on_progress=lambda done, whole: bar.update(task, completed=done, total=whole)
            )
    except ArchiveRejected as rejected:
        raise Refused(f"{file} is not genuine: {rejected}") from None
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Refused(f"{file}: {error}") from None


def _list_facts(verified: VerifiedArchive, source: str) -> list[tuple[str, Any]]:
    return [
        ("Format", verified.format),
        ("Subject", verified.subject_id),
        ("Organisation", verified.organization_id),
        ("Exported", verified.exported_at),
        *((make_label(name), count) for name, count in verified.counts.items()),
        ("Sealed by", verified.key_id),
        ("Verified with", source),
    ]


def _describe(verified: VerifiedArchive, source: str) -> dict[str, Any]:
    return {
        "format": verified.format,
        "subject_id": verified.subject_id,
        "organization_id": verified.organization_id,
        "exported_at": format_timestamp(verified.exported_at),
        "counts": dict(verified.counts),
        "digest": verified.digest,
        "key_id": verified.key_id,
        "key_ids": list(verified.key_ids),
        "keys_are_trusted": verified.keys_are_trusted,
        "verified_with": source,
    }
