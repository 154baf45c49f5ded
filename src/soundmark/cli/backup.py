"""`soundmark backup` and `soundmark restore`: a whole deployment into a folder, and back."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from soundmark.audience.store.sealed_values import SEALED_COLUMNS as AUDIENCE_SEALED
from soundmark.cli import Refused
from soundmark.cli.databases import run_on_audience, run_on_core
from soundmark.cli.deployment import read_audience_databases, read_settings
from soundmark.core.steps.cells import list_cells_in_use
from soundmark.core.store.platform.sealed_values import SEALED_COLUMNS as CORE_SEALED
from soundmark.embedded.backup import (
    Backup,
    BackupRefused,
    Deployment,
    Part,
    fill,
    make_backup,
    read_backup,
    require_restorable,
)
from soundmark.embedded.dumps import DumpFailed
from soundmark.embedded.installation import NoPostgres
from soundmark.embedded.postgres import ClusterFailed
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.resealing import ResealRefused, require_openable
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import PREFIX
from soundmark.operating_system.files import NotTrusted, read_trusted, write_private
from soundmark.settings import MAIN_CELL, AudienceDatabaseSettings, CoreDatabaseSettings, KeysSettings
from soundmark.supervision.cells_file import find_cells_file, write_cells
from soundmark.supervision.data_dir import MASTER_KEY_FILE, DataDirRefused, read_master_keys
from soundmark.supervision.plan import audience_master_key, name_databases
from soundmark.supervision.stopped import run_stopped_databases

backup = typer.Typer(add_completion=False)
restore = typer.Typer(add_completion=False)

_RUNNING: Final = "The data dir of a running `soundmark up`; the environment takes precedence."
_STOPPED: Final = "The data dir of a stopped `soundmark up`, or a new one."
_say: Final = Console(stderr=True, highlight=False)


@backup.command("backup")
def backup_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to write; it must not exist yet.")],
    data_dir: Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help=_RUNNING)] = None,
    audience_master_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Audience's master key, unless it is the one that `up` derives."),
    ] = None,
) -> None:
    """Back up all databases, as of one point in time, and their master keys. Everything can keep running.

    Without --data-dir, only one cell is supported. If SOUNDMARK_AUDIENCE_CELLS_FILE lists more, back up each database
    with PostgreSQL's own means.

    Keep the folder secret: anyone who can read it can sign as you.
    """
    with _refusing():
        deployment = _running_deployment(data_dir, audience_master_key_file)
        with _say.status("Writing the databases ..."):
            made = make_backup(deployment, folder)
    core, events = made.rows["core"], sum(rows["events"] for part, rows in made.rows.items() if part != "core")
    typer.echo(
        f"{folder} contains everything as of {made.created_at}: {core['organizations']} organisations, "
        f"{core['codes']} Codes, {events} events. It contains the master keys: keep it secret."
    )


@restore.command("restore")
def restore_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `soundmark backup` wrote.")],
    data_dir: Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help=_STOPPED)] = None,
) -> None:
    """Restore a backup into empty databases that nothing uses.

    Without --data-dir, the databases are those in the environment. All changes after the backup are lost: Codes that
    were revoked since then resolve again until you revoke them again.
    """
    with _refusing():
        found = read_backup(folder)
        if data_dir is None:
            if _cells_count(found) > 1:
                raise Refused(f"this backup has {_cells_count(found)} cells: restore it with --data-dir")
            _fill(found, _databases_of_environment())
            where = "Give Core and Audience their master keys from the backup, then run `soundmark migrate` for both."
        else:
            _restore_beside(found, data_dir)
            cells = f" --cells {_cells_count(found)}" if _cells_count(found) > 1 else ""
            where = f"Start it: soundmark up --data-dir {data_dir}{cells}"
    typer.echo(f"Restored everything as of {found.created_at}. {where}")


def _cells_count(found: Backup) -> int:
    return len(found.rows) - 1


def _fill(found: Backup, urls: Mapping[Part, Secret]) -> None:
    require_restorable(urls)
    with _say.status("Filling the databases ..."):
        fill(found, urls)


def _restore_beside(found: Backup, data_dir: Path) -> None:
    """Restore into a data dir, and write the master key there."""
    key = found.master_keys["core"]
    derived = audience_master_key(key).reveal()
    if any(each.reveal() != derived for part, each in found.master_keys.items() if part != "core"):
        raise Refused(
            "this backup has two independent master keys, but `soundmark up` derives one from the other: restore it "
            "without --data-dir, into two databases of your own"
        )
    given = os.environ.get(f"{PREFIX}MASTER_KEY", "").strip()
    if given and given != key.reveal():
        raise Refused("SOUNDMARK_MASTER_KEY is not the key of this backup; unset it")
    with run_stopped_databases(data_dir, name_databases(_cells_count(found))) as urls:
        require_restorable(urls)
        # The key first: if this process dies halfway, what it restored can still be opened.
        write_private(data_dir / MASTER_KEY_FILE, key.reveal() + "\n")
        # And the number of cells: `up` refuses to start with fewer.
        if _cells_count(found) > 1:
            write_cells(find_cells_file(data_dir), [{} for _ in range(_cells_count(found))])
        with _say.status("Filling the databases ..."):
            fill(found, urls)


def _databases_of_environment() -> dict[Part, Secret]:
    core, audience = read_settings(CoreDatabaseSettings), read_settings(AudienceDatabaseSettings)
    _require_public_schema(audience)
    return {"core": core.core_database_url, "audience": audience.audience_database_url}


def _running_deployment(data_dir: Path | None, audience_key_file: Path | None) -> Deployment:
    """Find all databases and the master keys that open them.

    Raises: Refused.
    """
    core, audiences = read_settings(KeysSettings, data_dir), read_audience_databases(data_dir)
    _require_public_schema(audiences["audience"])
    _require_every_cell(core, audiences)
    core_keys = [core.master_key, *(_find_previous_key(data_dir))]
    core_key = _opening(
        core_keys, lambda keys: run_on_core(core, "backup", lambda ctx: require_openable(ctx.db, CORE_SEALED, keys))
    )
    if core_key is None:
        raise Refused("SOUNDMARK_MASTER_KEY does not open the sealed values in Core's database")
    if audience_key_file is not None:
        candidates = [_read_key(audience_key_file)]
    else:
        candidates = [audience_master_key(core_key), core_key]
    urls: dict[Part, Secret] = {"core": core.core_database_url}
    keys: dict[Part, Secret] = {"core": core_key}
    for part, audience in audiences.items():
        urls[part], keys[part] = audience.audience_database_url, _find_audience_key(audience, candidates)
    return Deployment(urls, keys)


def _require_every_cell(core: KeysSettings, audiences: Mapping[Part, AudienceDatabaseSettings]) -> None:
    """Refuse a backup that would leave out a cell that is in use.

    Raises: Refused.
    """
    in_use = run_on_core(core, "backup", list_cells_in_use)
    if len(audiences) == 1 and set(in_use) - {MAIN_CELL}:
        raise Refused(
            f"this command knows one cell, and {', '.join(in_use)} are in use: back up each database with PostgreSQL's "
            "own means"
        )


def _require_public_schema(audience: AudienceDatabaseSettings) -> None:
    """Raises: Refused."""
    if audience.own_schema is not None:
        raise Refused("SOUNDMARK_AUDIENCE_SCHEMA is set, and this command knows whole databases alone: use pg_dump")


def _find_audience_key(audience: AudienceDatabaseSettings, candidates: Sequence[Secret]) -> Secret:
    """Return the candidate that opens every sealed value of an Audience.

    Raises: Refused.
    """
    key = _opening(
        candidates,
        lambda keys: run_on_audience(audience, "backup", lambda db: require_openable(db, AUDIENCE_SEALED, keys)),
    )
    if key is None:
        raise Refused(
            "no known key opens the sealed values in Audience's database: give its key with --audience-master-key-file"
        )
    return key


def _opening(keys: Sequence[Secret], require: Callable[[list[Sealer]], None]) -> Secret | None:
    """Return the first key that opens every sealed value, or None."""
    for key in keys:
        with contextlib.suppress(ResealRefused):
            require([Sealer(parse_master_key(key.reveal()), SystemEntropy())])
            return key
    return None


def _find_previous_key(data_dir: Path | None) -> list[Secret]:
    """Return the previous master key of a data dir if its last reseal is unfinished."""
    if data_dir is None:
        return []
    before = read_master_keys(data_dir)[1]
    return [] if before is None else [before]


def _read_key(file: Path) -> Secret:
    try:
        text = read_trusted(file).strip()
        parse_master_key(text)
    except NotTrusted as reason:
        raise Refused(str(reason)) from None
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Refused(f"{file} must contain 32 bytes in base64url without padding (43 characters)") from None
    return Secret(text)


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except (BackupRefused, ClusterFailed, DataDirRefused, DumpFailed, NoPostgres) as refusal:
        raise Refused(str(refusal)) from None
