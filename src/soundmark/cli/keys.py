"""`soundmark keys`: Core's signing keys, `next` → `active` → `retiring` → retired."""

import json
import math
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.errors import Refused
from soundmark.core.context import Context
from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.features.codes.signing_keys import service
from soundmark.core.features.codes.signing_keys.rotation import calm_at, put_in_place
from soundmark.core.features.codes.signing_keys.service import PROOFS_GONE_AFTER, PUBLISHED_AHEAD_S, KeyRefused
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.settings import CoreDatabaseSettings, KeysSettings, RotationSettings

_STEP_S = 0.25

T = TypeVar("T")

app = typer.Typer(add_completion=False, no_args_is_help=True)
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="As `soundmark keys list` shows it.")]


@app.callback()
def keys() -> None:
    """List, stage, activate, retire and rotate Core's signing keys."""


@app.command("list")
def list_keys(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for a program.")] = False,
) -> None:
    """Show every key that ever was, oldest first. No secret half is ever shown."""
    given = read_settings(CoreDatabaseSettings, data_dir)
    records = _run(given, service.list_keys)
    if as_json:
        typer.echo(json.dumps([_shown(record) for record in records], indent=2))
    else:
        Console().print(_table(records))


@app.command()
def stage(data_dir: DataDir = None) -> None:
    """Publish a key that will sign later; one that is staged already stays the one."""
    typer.echo(f"{_stage(data_dir).key_id} is published as `next`")


@app.command()
def activate(key_id: KeyId, data_dir: DataDir = None) -> None:
    """Sign with a staged key from now on; the one that signed becomes `retiring` and goes on verifying.

    Every Audience integration is told of the key before. Run it again where that was interrupted.
    `soundmark keys rotate` does this too, and waits first until every receiver can know the key.
    """
    _put_in_place(key_id, data_dir)
    typer.echo(f"{key_id} is active")


@app.command()
def retire(key_id: KeyId, data_dir: DataDir = None) -> None:
    """Publish a replaced key no longer and destroy its secret half; refused while something signed by it lives."""
    _run_with_keys(read_settings(KeysSettings, data_dir), lambda ctx: service.retire(ctx, key_id))
    typer.echo(f"{key_id} is retired")


@app.command()
def rotate(
    data_dir: DataDir = None,
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait",
            help="Activate at once: for an emergency. Receivers may have to ask again, and where Audience does not "
            "answer it is told by the worker, as soon as it does.",
        ),
    ] = False,
) -> None:
    """Replace the key that signs, without a restart and without an answer or an event that fails.

    A key is staged (or the one taken that is staged already), published for as long as anybody may cache the published
    keys, told to every Audience integration, and activated. Soon after another rotation it waits for up to six minutes,
    until no proof lives that the key before signed. What was interrupted is continued by running it again; from when on
    integrations are told, the worker continues it too.
    """
    staged = _stage(data_dir)
    typer.echo(f"{staged.key_id} is published as `next`")
    if not no_wait:
        clock = SystemClock()
        _wait_until_known(staged, clock)
        if staged.push_began_at is None:
            _wait_until_calm(_run(read_settings(CoreDatabaseSettings, data_dir), calm_at), clock)
    if not _put_in_place(staged.key_id, data_dir, must_be_told=not no_wait):
        typer.echo("Audience does not answer: the worker tells it of the key as soon as it does", err=True)
    typer.echo(f"{staged.key_id} is active; the key before it is `retiring` and goes on verifying what it signed")


def _stage(data_dir: Path | None) -> SigningKeyRecord:
    return _run_with_keys(read_settings(KeysSettings, data_dir), service.stage)


def _put_in_place(key_id: str, data_dir: Path | None, *, must_be_told: bool = True) -> bool:
    """Have every integration trust the key, then activate it; return whether Audience knows of it."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} integrations"))
    console = Console(stderr=True)

    async def command(ctx: Context) -> bool:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("Telling Audience of the key", total=None)
            return await put_in_place(
                ctx, key_id, must_be_told=must_be_told, tell=lambda count: progress.update(task, completed=count)
            )

    return _run_with_keys(read_settings(RotationSettings, data_dir), command)


def _wait_until_known(staged: SigningKeyRecord, clock: Clock) -> None:
    """Return when no cache of the published keys can lack `staged`; no transaction is open meanwhile."""
    published_s = (clock.now() - staged.created_at).total_seconds()
    # A database that another machine wrote to with a faster clock must not make us wait for hours.
    wait_s = min(PUBLISHED_AHEAD_S - published_s, PUBLISHED_AHEAD_S)
    if wait_s > 0:
        _wait(wait_s, "Until every cache of /v1/keys has it", clock)
        typer.echo(f"published for {math.ceil(max(published_s, 0) + wait_s)} s", err=True)


def _wait_until_calm(moment: datetime | None, clock: Clock) -> None:
    """Return when no proof lives that was signed before the last rotation, which is at `moment`."""
    wait_s = 0.0 if moment is None else (moment - clock.now()).total_seconds()
    if wait_s > 0:
        # As above, of a faster clock.
        _wait(min(wait_s, PROOFS_GONE_AFTER.total_seconds()), "Until no proof of the key before lives", clock)


def _wait(wait_s: float, what: str, clock: Clock) -> None:
    until_s = clock.monotonic_s() + wait_s
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"{what} (Ctrl-C, then rotate again: safe)", total=wait_s)
        while (left_s := until_s - clock.monotonic_s()) > 0:
            progress.update(task, completed=wait_s - left_s)
            time.sleep(min(_STEP_S, left_s))


def _run_with_keys(given: KeysSettings, command: Callable[[Context], Awaitable[T]]) -> T:
    async def check_first(ctx: Context) -> T:
        # Core would not start with a key that another master key sealed, so the stored one must open first.
        await service.ensure_active(ctx)
        return await command(ctx)

    return _run(given, check_first)


def _run(given: CoreDatabaseSettings, command: Callable[[Context], Awaitable[T]]) -> T:
    """Return what `command` returns, on Core's database.

    Raises: Refused.
    """
    try:
        return run_on_core(given, "keys", command)
    except KeyRefused as refused:
        raise Refused(str(refused)) from None
    except SealBroken as broken:
        raise Refused(f"this master key does not open the stored signing keys: {broken}") from None


def _shown(record: SigningKeyRecord) -> dict[str, Any]:
    times = ("created_at", "activated_at", "superseded_at", "retired_at")
    moments = {name: getattr(record, name) for name in times}
    return {
        "key_id": record.key_id,
        "status": record.status,
        **{name: None if moment is None else format_timestamp(moment) for name, moment in moments.items()},
    }


def _table(records: list[SigningKeyRecord]) -> Table:
    table = Table()
    table.add_column("Key", no_wrap=True)
    for heading in ("Status", "Created", "Activated", "Superseded"):
        table.add_column(heading)
    for record in records:
        moments = (record.created_at, record.activated_at, record.superseded_at)
        table.add_row(record.key_id, record.status, *(_for_people(moment) for moment in moments))
    return table


def _for_people(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
