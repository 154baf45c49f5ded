"""A backup of a deployment: all databases at one moment, and the master keys that open their sealed values.

It is a folder of mode 0700 with `core.dump`, `audience.dump`, `core-master.key`, `audience-master.key`, two such files
for each further cell, and `manifest.json`, which holds the digests of the others. An unfinished folder has another
name.
"""

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import soundmark
from soundmark.embedded import dumps
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.operating_system.files import (
    InUse,
    NotTrusted,
    flush_directory,
    kept_alone,
    require_trusted_folder,
    write_private,
)

Part: TypeAlias = str  # `core`, `audience`, or the Audience of a further cell, such as `audience-cell-2`.

FORMAT: Final = "soundmark-backup-v1"

_MANIFEST: Final = "manifest.json"
_LOCK: Final = f"{_MANIFEST}.lock"  # The name that `kept_alone` gives it.
_PART: Final = re.compile(r"core|audience(-cell-\d{1,3})?")
_DUMPS_AT_ONCE: Final = 4
_ATTEMPTS: Final = 50
_BLOCK_BYTES: Final = 1024 * 1024
# Core writes one of these before every change that it makes in Audience. If none of them changes between the two
# snapshots, Audience's snapshot contains no change that Core's does not know of.
_CHANGES: Final = """
    SELECT (SELECT count(*) FROM audit_entries WHERE action LIKE 'audience.%'),
           (SELECT coalesce(sum(revision), 0) FROM audience_entitlements),
           (SELECT string_agg(format('%s %s %s %s', key_id, status, push_began_at, pushed_at), ',' ORDER BY key_id)
              FROM signing_keys)
"""
_STOP_LOG: Final = "UPDATE log_state SET stopped_reason = 'restored' WHERE stopped_reason IS NULL"
# The tables that are not empty in a migrated but unused database: its own keys, payment providers, plans and jobs.
_OWN_TABLES: Final = frozenset(
    {
        "alembic_version",
        "instance_secrets",
        "log_checkpoints",
        "log_keys",
        "log_leaves",
        "log_queue",
        "log_state",
        "log_tiles",
        "payment_providers",
        "plans",
        "proof_transition",
        "signing_keys",
    }
)
_JOB_TABLES: Final = "procrastinate_"


class BackupRefused(Exception):
    """The backup cannot be made or restored; the message is one line for the operator, without secrets."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """The URLs of all databases, Core's first, and the master keys of their components."""

    urls: Mapping[Part, Secret]
    master_keys: Mapping[Part, Secret]


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup whose files match its manifest."""

    folder: Path
    created_at: str
    rows: Mapping[Part, Mapping[str, int]]
    master_keys: Mapping[Part, Secret]

    def dump_of(self, part: Part) -> Path:
        """Return the file of one database."""
        return self.folder / f"{part}.dump"


def make_backup(deployment: Deployment, folder: Path) -> Backup:
    """Create `folder` with a backup of a deployment, which may keep running.

    1. Take a snapshot of Core's database, then one of each cell's; repeat this if Core began a change in one of them in
       between. 2. Dump all. 3. Write the keys and the manifest, flush everything to the disk and rename the folder.

    Raises: BackupRefused; dumps.DumpFailed. A failed backup leaves nothing behind.
    """
    unfinished = folder.with_name(folder.name + ".unfinished")
    with _begin(folder, unfinished):
        with _open_snapshots(deployment.urls) as snapshots, ThreadPoolExecutor(_DUMPS_AT_ONCE) as threads:
            created_at = format_timestamp(SystemClock().now())
            dumping = [threads.submit(dumps.dump, snapshots[part], unfinished / f"{part}.dump") for part in snapshots]
            try:
                rows = {part: snapshot.rows() for part, snapshot in snapshots.items()}
                for each in dumping:
                    each.result()
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                dumps.end_dumps()
                raise
        for part in deployment.urls:
            (unfinished / f"{part}.dump").chmod(0o600)
            write_private(unfinished / f"{part}-master.key", deployment.master_keys[part].reveal() + "\n")
        manifest = {
            "format": FORMAT,
            "created_at": created_at,
            "soundmark": soundmark.__version__,
            "rows": rows,
            "sha256": {name: _digest_of(unfinished / name) for name in _names_of(deployment.urls)},
        }
        write_private(unfinished / _MANIFEST, json.dumps(manifest, indent=2) + "\n")
        unfinished.rename(folder)
        flush_directory(folder.absolute().parent)
        (folder / _LOCK).unlink()
    return read_backup(folder)


@contextlib.contextmanager
def _begin(folder: Path, unfinished: Path) -> Iterator[None]:
    """Hold an empty `unfinished`, which becomes `folder`; remove it if the block fails.

    Raises: BackupRefused.
    """
    _require_new(folder)
    with contextlib.ExitStack() as stack:
        try:
            unfinished.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_trusted_folder(unfinished)
            stack.enter_context(kept_alone(unfinished / _MANIFEST))
        except InUse:
            raise BackupRefused(f"another backup into {folder} is under way; name another folder") from None
        except NotTrusted as reason:
            raise BackupRefused(str(reason)) from None
        except OSError as error:
            raise BackupRefused(f"{unfinished} cannot be created: {error.strerror}") from None
        try:
            _require_new(folder)  # Another backup may have become it before the lock was free.
            for left in unfinished.iterdir():  # By a backup that was killed.
                if left.name != _LOCK:
                    left.unlink()
            yield
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise


def _require_new(folder: Path) -> None:
    if folder.exists():
        raise BackupRefused(f"{folder} already exists; name a new folder")


def read_backup(folder: Path) -> Backup:
    """Return the backup in `folder`, after comparing each of its files with the manifest.

    Raises: BackupRefused, naming the first file that is missing or was altered.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT:
            raise BackupRefused(f"{folder} is a backup in a format other than {FORMAT}")
        parts = _parts_of(manifest["rows"])
        for name in _names_of(parts):
            if _digest_of(folder / name) != manifest["sha256"][name]:
                raise BackupRefused(f"{folder / name} does not match the manifest: it was altered or cut short")
        keys = {part: Secret((folder / f"{part}-master.key").read_text(encoding="ascii").strip()) for part in parts}
        return Backup(folder, manifest["created_at"], {part: manifest["rows"][part] for part in parts}, keys)
    except OSError as error:
        raise BackupRefused(f"{error.filename or folder} cannot be read: {error.strerror}") from None
    except (KeyError, TypeError, ValueError):
        raise BackupRefused(f"{folder / _MANIFEST} is not the manifest of a backup") from None


def require_restorable(urls: Mapping[Part, Secret]) -> None:
    """Refuse databases that are in use, or that hold anything but the remains of an interrupted restore.

    Raises: BackupRefused; dumps.DumpFailed.
    """
    for part, url in urls.items():
        dumps.require_unused(url)
        held = [] if dumps.is_half_restored(url) else _content(dumps.count_rows(url))
        if held:
            raise BackupRefused(
                f"{part.capitalize()}'s database is not empty ({', '.join(held[:3])}): restore into a new one"
            )


def fill(backup: Backup, urls: Mapping[Part, Secret]) -> None:
    """Restore a backup into the databases of its parts, which `require_restorable` accepts.

    1. Empty and mark all. 2. Fill those of Audience, then Core's, each all or nothing. 3. Count every row. 4. Stop the
    transparency log: others may have seen more of it than the backup has. 5. Remove the marks. After an interruption,
    `require_restorable` accepts all again, and this starts over.

    Raises: BackupRefused; dumps.DumpFailed.
    """
    parts = list(backup.rows)
    for part in parts:
        dumps.empty(urls[part])
    for part in reversed(parts):
        dumps.restore(backup.dump_of(part), urls[part])
    for part in parts:
        if dumps.count_rows(urls[part]) != backup.rows[part]:
            raise BackupRefused(f"{part.capitalize()}'s database differs from the backup; run this again")
    dumps.change(urls["core"], _STOP_LOG)
    dumps.finish([urls[part] for part in parts])


@contextlib.contextmanager
def _open_snapshots(urls: Mapping[Part, Secret]) -> Iterator[dict[Part, dumps.Snapshot]]:
    for _ in range(_ATTEMPTS):
        with contextlib.ExitStack() as stack:
            snapshots = {part: stack.enter_context(dumps.open_snapshot(url)) for part, url in urls.items()}
            if snapshots["core"].values(_CHANGES) == dumps.read_now(urls["core"], _CHANGES):
                yield snapshots
                return
    raise BackupRefused("integrations or keys changed during the backup; try again later")


def _parts_of(rows: Mapping[Part, Any]) -> list[Part]:
    """Return the parts of a backup, whose names are those of files.

    Raises: ValueError.
    """
    parts = list(rows)
    if parts[:2] != ["core", "audience"] or not all(map(_PART.fullmatch, parts)):
        raise ValueError("these are not the parts of a deployment")
    return parts


def _names_of(parts: Iterable[Part]) -> list[str]:
    return sorted(f"{part}{suffix}" for part in parts for suffix in (".dump", "-master.key"))


def _content(rows: Mapping[str, int]) -> list[str]:
    """Return the tables with rows that a migrated but unused database does not have."""
    return [
        name for name, count in rows.items() if count and name not in _OWN_TABLES and not name.startswith(_JOB_TABLES)
    ]


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
