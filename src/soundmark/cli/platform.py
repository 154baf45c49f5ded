"""`soundmark platform`: an operator's changes to a whole deployment."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from soundmark.audience.store.sealed_values import SEALED_COLUMNS as AUDIENCE_SEALED
from soundmark.cli import Refused, accounting
from soundmark.cli.abuse_reports import abuse_reports, close_abuse_report, reopen_abuse_report
from soundmark.cli.catalog import catalog
from soundmark.cli.cell import cell
from soundmark.cli.databases import run_on_audience, run_on_core
from soundmark.cli.deployment import DataDir, deployment_environ, read_audience_databases, read_settings
from soundmark.cli.entitle import entitle
from soundmark.cli.options import command
from soundmark.cli.release_readiness import release_readiness
from soundmark.cli.suspensions import organizations, restore, suspend
from soundmark.cli.system_test import send_test
from soundmark.core.store.platform.sealed_values import SEALED_COLUMNS as CORE_SEALED
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.resealing import Resealed, ResealRefused, require_openable
from soundmark.kit.crypto.resealing import reseal as reseal_everything
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.settings import PREFIX
from soundmark.settings import AudienceDatabaseSettings, AudienceKeysSettings, KeysSettings, WithDatabase
from soundmark.supervision.data_dir import MASTER_KEY_FILE, DataDirRefused, read_master_keys, replace_master_key
from soundmark.supervision.plan import audience_master_key

S = TypeVar("S")
P = TypeVar("P")
T = TypeVar("T")

app = typer.Typer(add_completion=False, no_args_is_help=True)
app.command()(abuse_reports)
app.command()(catalog)
app.command()(cell)
app.command()(close_abuse_report)
app.command()(entitle)
app.command()(organizations)
app.command()(release_readiness)
app.command()(reopen_abuse_report)
app.command()(restore)
app.command()(suspend)
command(app, "test")(send_test)
app.add_typer(accounting.app, name="accounting")


@app.callback()
def platform() -> None:
    """Suspend organisations, close abuse reports, test systems, show the catalogue, entitle, name cells, reseal."""


@app.command()
def reseal(
    new_master_key_file: Annotated[
        Path,
        typer.Option(metavar="FILE", help="The file with the new master key: 32 bytes in base64url, 43 characters."),
    ],
    component: Annotated[
        WithDatabase | None,
        typer.Option(help="The component whose secrets to reseal. Default: core; with a data dir, all."),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Seal every stored secret under a new master key: all or none.

    The old key is SOUNDMARK_MASTER_KEY or the key in the data dir. The command then saves the new key in the data dir
    and keeps the old one beside it; Audience's key there is derived from it. Afterwards, restart every process with the
    new key, and run the same command once more, for secrets that were sealed under the old key before the restart.
    Running it again is always safe.
    """
    if data_dir is not None and component is not None:
        raise Refused("a data dir has one master key for both components: leave out --component")
    new = _read_key(new_master_key_file)
    if component == "audience":
        own = read_settings(AudienceKeysSettings)
        done, whose = _reseal_audience(own, old=[own.master_key], new=new), "Audience"
    else:
        done, whose = _reseal_beside(data_dir, new)
    typer.echo(f"{_values(done.moved_count)} moved to the new master key; {done.already_count} already had it")
    if data_dir is not None and read_master_keys(data_dir)[0] is not None:
        replace_master_key(data_dir, new)
        typer.echo(f"the new key is in {data_dir / MASTER_KEY_FILE}")
    if done.moved_count:
        typer.echo(f"now restart every process of {whose} with the new key, then run this command once more")


def _reseal_beside(data_dir: Path | None, new: Secret) -> tuple[Resealed, str]:
    """Reseal Core's secrets, and Audience's if the data dir has them. Return also which components they belong to."""
    given = read_settings(KeysSettings, data_dir)
    old = [given.master_key, *_find_other_keys(data_dir, given.master_key, new)]
    audiences = _audiences_beside(data_dir)
    if not audiences:
        return _reseal_core(given, old=old, new=new), "Core"
    return _reseal_all(given, audiences, old=old, new=new), "Core and Audience"


def _reseal_all(
    given: KeysSettings, audiences: Sequence[AudienceDatabaseSettings], *, old: Sequence[Secret], new: Secret
) -> Resealed:
    """Reseal all databases of a data dir. After an interruption between them, running it again completes it."""
    theirs = [audience_master_key(key) for key in (new, *old)]
    # Checked first, so that none is refused after another was changed.
    for audience in audiences:
        _refusing(run_on_audience, audience, lambda db: require_openable(db, AUDIENCE_SEALED, _sealers(theirs)))
    done = [_reseal_core(given, old=old, new=new)]
    done += [_reseal_audience(audience, old=theirs[1:], new=theirs[0]) for audience in audiences]
    return Resealed(sum(each.moved_count for each in done), sum(each.already_count for each in done))


def _reseal_core(given: KeysSettings, *, old: Sequence[Secret], new: Secret) -> Resealed:
    sealers = _sealers([new, *old])
    return _refusing(
        run_on_core, given, lambda ctx: reseal_everything(ctx.db, CORE_SEALED, old=sealers[1:], new=sealers[0])
    )


def _reseal_audience(given: AudienceDatabaseSettings, *, old: Sequence[Secret], new: Secret) -> Resealed:
    sealers = _sealers([new, *old])
    return _refusing(
        run_on_audience, given, lambda db: reseal_everything(db, AUDIENCE_SEALED, old=sealers[1:], new=sealers[0])
    )


def _refusing(
    run_on: Callable[[S, str, Callable[[P], Awaitable[T]]], T], given: S, command: Callable[[P], Awaitable[T]]
) -> T:
    try:
        return run_on(given, "platform", command)
    except ResealRefused as refused:
        raise Refused(f"nothing was changed: {refused}") from None


def _audiences_beside(data_dir: Path | None) -> list[AudienceDatabaseSettings]:
    """Return the settings of Audience's database in each cell; none if the data dir does not know it."""
    if data_dir is None or not deployment_environ(data_dir).get(f"{PREFIX}AUDIENCE_DATABASE_URL"):
        return []
    return list(read_audience_databases(data_dir).values())


def _sealers(keys: Sequence[Secret]) -> list[Sealer]:
    entropy = SystemEntropy()
    return [Sealer(parse_master_key(key.reveal()), entropy) for key in keys]


def _read_key(file: Path) -> Secret:
    try:
        text = file.read_text(encoding="utf-8").strip()
        parse_master_key(text)
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        # The message does not repeat a malformed text, which could be most of a key.
        raise Refused(f"{file} must contain 32 bytes in base64url without padding (43 characters)") from None
    return Secret(text)


def _find_other_keys(data_dir: Path | None, given: Secret, new: Secret) -> list[Secret]:
    """Return the keys in the data dir that may have sealed something too.

    Raises: Refused if the data dir's key, which we are about to replace, differs from the configured one.
    """
    if data_dir is None:
        return []
    try:
        kept, before = read_master_keys(data_dir)
    except DataDirRefused as refused:
        raise Refused(str(refused)) from None
    if kept is not None and kept.reveal() not in {given.reveal(), new.reveal()}:
        raise Refused(f"SOUNDMARK_MASTER_KEY is not the key in {data_dir / MASTER_KEY_FILE}; unset it")
    return [key for key in (kept, before) if key is not None]


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"
