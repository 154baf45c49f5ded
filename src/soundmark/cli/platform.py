"""`soundmark platform`: what whoever runs the platform does to a deployment."""

from pathlib import Path
from typing import Annotated

import typer

from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.outcome import Refused
from soundmark.core.features.platform.reseal import Resealed, ResealRefused
from soundmark.core.features.platform.reseal import reseal as reseal_everything
from soundmark.embedded.data_dir import MASTER_KEY_FILE, DataDirRefused, kept_master_keys, replace_master_key
from soundmark.kit.entropy import SystemEntropy
from soundmark.kit.postgres import Database
from soundmark.kit.sealing import Sealer, parse_master_key
from soundmark.kit.secret import Secret
from soundmark.settings import KeysSettings

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def platform() -> None:
    """Change what every organisation of a deployment rests on."""


@app.command()
def reseal(
    new_master_key_file: Annotated[
        Path, typer.Option(metavar="FILE", help="Holds the new master key: 32 bytes in base64url, 43 characters.")
    ],
    data_dir: DataDir = None,
) -> None:
    """Seal every stored secret under a new master key, all of them or none.

    SOUNDMARK_MASTER_KEY, or the data dir, says which key sealed them. The data dir gets the new key afterwards, and
    keeps the old one beside it. Then restart every process with the new key, and run the same command once more: it
    moves what was sealed under the old key until the restart. Running it again is always safe.
    """
    given = read_settings(KeysSettings, data_dir)
    new = _read_key(new_master_key_file)
    old = [given.master_key, *_kept_in(data_dir, given.master_key, new)]
    entropy = SystemEntropy()
    sealers = [Sealer(parse_master_key(key.reveal()), entropy) for key in (new, *old)]

    async def command(db: Database) -> Resealed:
        return await reseal_everything(db, old=sealers[1:], new=sealers[0])

    try:
        done = run_on_core(given, "platform", command)
    except ResealRefused as refused:
        raise Refused(f"nothing was changed: {refused}") from None
    typer.echo(f"{_values(done.moved_count)} moved to the new master key; {done.already_count} had it already")
    if data_dir is not None and kept_master_keys(data_dir)[0] is not None:
        replace_master_key(data_dir, new)
        typer.echo(f"the new key is in {data_dir / MASTER_KEY_FILE}")
    if done.moved_count:
        typer.echo("now restart every process of Core with the new key, then run this command once more")


def _read_key(file: Path) -> Secret:
    try:
        text = file.read_text(encoding="utf-8").strip()
        parse_master_key(text)
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    except ValueError:
        # Of a broken text it says no more either: it could be most of a key.
        raise Refused(f"{file} must hold 32 bytes in base64url without padding (43 characters)") from None
    return Secret(text)


def _kept_in(data_dir: Path | None, given: Secret, new: Secret) -> list[Secret]:
    """The keys in the data dir that may have sealed something too.

    Raises: Refused where the data dir's key is another than the one that we were told, since we are to replace it.
    """
    if data_dir is None:
        return []
    try:
        kept, before = kept_master_keys(data_dir)
    except DataDirRefused as refused:
        raise Refused(str(refused)) from None
    if kept is not None and kept.reveal() not in {given.reveal(), new.reveal()}:
        raise Refused(f"SOUNDMARK_MASTER_KEY is not the key in {data_dir / MASTER_KEY_FILE}; unset it")
    return [key for key in (kept, before) if key is not None]


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"
