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

from soundmark.cli import Refused
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.core.context import Context
from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.features.codes.signing_keys import service
from soundmark.core.features.codes.signing_keys.rotation import find_last_proof_end, put_in_place
from soundmark.core.features.codes.signing_keys.service import PROOFS_GONE_AFTER, PUBLISHED_AHEAD_S, KeyRefused
from soundmark.kit.clock import Clock, SystemClock
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.settings import CoreDatabaseSettings, KeysSettings, RotationSettings

_STEP_S = 0.25

T = TypeVar("T")

app = typer.Typer(add_completion=False, no_args_is_help=True)
KeyId = Annotated[str, typer.Argument(metavar="KEY_ID", help="The key's id, as `soundmark keys list` shows it.")]


@app.callback()
def keys() -> None:
    """List, stage, activate, retire and rotate Core's signing keys."""


@app.command("list")
def list_keys(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List all keys, oldest first, including retired ones. Private keys are never shown."""
    given = read_settings(CoreDatabaseSettings, data_dir)
    records = _run(given, service.list_keys)
    if as_json:
        typer.echo(json.dumps([_describe(record) for record in records], indent=2))
    else:
        Console().print(_table(records))


@app.command()
def stage(data_dir: DataDir = None) -> None:
    """Publish a key that will sign later. If a key is already staged, keep that one."""
    typer.echo(f"{_stage(data_dir).key_id} is published as `next`")


@app.command()
def activate(key_id: KeyId, data_dir: DataDir = None) -> None:
    """Make a staged key the signing key. The previous key becomes `retiring` and still verifies.

    First, every Audience integration receives the new key; if that is interrupted, run the command again. Prefer
    `soundmark keys rotate`, which also waits until every receiver can have the key.
    """
    _put_in_place(key_id, data_dir)
    typer.echo(f"{key_id} is active")


@app.command()
def retire(key_id: KeyId, data_dir: DataDir = None) -> None:
    """Unpublish a `retiring` key and destroy its private key. Refused while a Code or proof signed with it is valid."""
    _run_with_keys(read_settings(KeysSettings, data_dir), lambda ctx: service.retire(ctx, key_id))
    typer.echo(f"{key_id} is retired")


@app.command()
def rotate(
    data_dir: DataDir = None,
    no_wait: Annotated[
        bool,
        typer.Option(
            "--no-wait",
            help="Activate the new key immediately, in an emergency. Receivers might have to fetch the keys again. "
            "If Audience does not answer, Core's worker sends it the key later.",
        ),
    ] = False,
) -> None:
    """Rotate the signing key, without a restart and without failing a single request.

    The command stages a key (unless one is staged already), waits until every cache of the published keys has it, sends
    it to every Audience integration, and activates it. Soon after another rotation, it waits up to six minutes for the
    proofs of the previous key to expire. If it is interrupted, run it again. Once it has begun to send the key to
    integrations, Core's worker can also complete it.
    """
    staged = _stage(data_dir)
    typer.echo(f"{staged.key_id} is published as `next`")
    if not no_wait:
        clock = SystemClock()
        _wait_until_known(staged, clock)
        if staged.push_began_at is None:
            _wait_until_calm(_run(read_settings(CoreDatabaseSettings, data_dir), find_last_proof_end), clock)
    if not _put_in_place(staged.key_id, data_dir, must_reach_audience=not no_wait):
        typer.echo("Audience does not answer; Core's worker will send it the key as soon as possible", err=True)
    typer.echo(f"{staged.key_id} is active; the previous key is `retiring` and still verifies")


def _stage(data_dir: Path | None) -> SigningKeyRecord:
    return _run_with_keys(read_settings(KeysSettings, data_dir), service.stage)


def _put_in_place(key_id: str, data_dir: Path | None, *, must_reach_audience: bool = True) -> bool:
    """Make every integration trust the key, then activate it; return whether Audience has it."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed} integrations"))
    console = Console(stderr=True)

    async def command(ctx: Context) -> bool:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("Sending the key to Audience", total=None)
            return await put_in_place(
                ctx,
                key_id,
                must_reach_audience=must_reach_audience,
                tell=lambda count: progress.update(task, completed=count),
            )

    return _run_with_keys(read_settings(RotationSettings, data_dir), command)


def _wait_until_known(staged: SigningKeyRecord, clock: Clock) -> None:
    """Wait until no cache of the published keys can lack `staged`, with no transaction open."""
    published_s = (clock.now() - staged.created_at).total_seconds()
    # The machine that wrote `created_at` may have a faster clock; that must not make us wait for hours.
    wait_s = min(PUBLISHED_AHEAD_S - published_s, PUBLISHED_AHEAD_S)
    if wait_s > 0:
        _wait(wait_s, "Waiting until every cache of /v1/keys has it", clock)
        typer.echo(f"published for {math.ceil(max(published_s, 0) + wait_s)} s", err=True)


def _wait_until_calm(moment: datetime | None, clock: Clock) -> None:
    """Wait until `moment`, when every proof signed before the last rotation has expired."""
    wait_s = 0.0 if moment is None else (moment - clock.now()).total_seconds()
    if wait_s > 0:
        # Bounded because of a faster clock, as above.
        _wait(min(wait_s, PROOFS_GONE_AFTER.total_seconds()), "Waiting until older proofs have expired", clock)


def _wait(wait_s: float, what: str, clock: Clock) -> None:
    until_s = clock.monotonic_s() + wait_s
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"{what} (Ctrl-C is safe: rotate again)", total=wait_s)
        while (left_s := until_s - clock.monotonic_s()) > 0:
            progress.update(task, completed=wait_s - left_s)
            time.sleep(min(_STEP_S, left_s))


def _run_with_keys(given: KeysSettings, command: Callable[[Context], Awaitable[T]]) -> T:
    async def check_first(ctx: Context) -> T:
        # A key sealed under another master key would keep Core from starting, so the stored one must open first.
        await service.ensure_active(ctx)
        return await command(ctx)

    return _run(given, check_first)


def _run(given: CoreDatabaseSettings, command: Callable[[Context], Awaitable[T]]) -> T:
    """Run `command` on Core's database and return its result.

    Raises: Refused.
    """
    try:
        return run_on_core(given, "keys", command)
    except KeyRefused as refused:
        raise Refused(str(refused)) from None
    except SealBroken as broken:
        raise Refused(f"this master key does not open the stored signing keys: {broken}") from None


def _describe(record: SigningKeyRecord) -> dict[str, Any]:
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
