"""`soundmark log`: the transparency log, for its auditors, its organisations, its witnesses and its operator."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import MofNCompleteColumn

from soundmark import settings
from soundmark.cli import Refused
from soundmark.cli.api import open_client, progress_of, show_json
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.log_monitor import (
    LoggedCodes,
    OwnCode,
    describe_codes,
    judge_codes,
    judge_unlisted,
    read_codes,
    read_deletions,
)
from soundmark.cli.log_source import KnownLog, find_trust, keep_known, open_log, read_known, read_others
from soundmark.cli.options import BaseUrl, Connection, Organization, UpDir, command, read_moment
from soundmark.cli.service import find_service
from soundmark.core.context import Context
from soundmark.core.domain.log.auditing import LogFault
from soundmark.core.domain.log.checkpoint import Checkpoint, parse_checkpoint
from soundmark.core.features.log.integration import commands
from soundmark.core.features.log.integration.keys import LogRefused, retire_key, rotate_key
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.crypto.signed_notes import is_name
from soundmark.settings import CoreDatabaseSettings, KeysSettings

app = typer.Typer(add_completion=False, no_args_is_help=True)
T = TypeVar("T")

Vkeys = Annotated[
    list[str] | None,
    typer.Option("--vkey", metavar="VKEY", help="A key of the log that you trust; may be repeated."),
]
Witnesses = Annotated[
    list[str] | None,
    typer.Option("--witness", metavar="VKEY", help="A witness that must have cosigned; may be repeated."),
]
Quorum = Annotated[
    int | None, typer.Option("--quorum", min=0, help="How many of these witnesses. Default: all of them.")
]
StateFile = Annotated[
    Path | None,
    typer.Option("--state", metavar="FILE", help="The file of the last checkpoint, which the log must extend."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The options that say whom the command believes."""

    vkey: Vkeys = None
    witness: Witnesses = None
    quorum: Quorum = None
    state: StateFile = None


@app.callback()
def log() -> None:
    """Verify, monitor, witness and operate the transparency log."""


@command(app)
def verify(
    *,
    base_url: BaseUrl = None,
    data_dir: UpDir = None,
    trust: Trust,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify the whole log: the signature, every entry, every hash, and that it extends the last checkpoint.

    Exit status 0 if it is whole and consistent; 1 if not, with the first fault. Without --vkey, the keys of the state
    file count, and the first time those that the log itself names: compare them with somebody else's.
    """
    address = find_service(Connection(base_url, data_dir=data_dir)).base_url
    checkpoint, _ = _examine(address, trust, LoggedCodes())
    found = {"origin": checkpoint.origin, "size": checkpoint.size, "root": checkpoint.root.hex()}
    if as_json:
        show_json(found)
    else:
        typer.echo(f"{checkpoint.origin}: whole and consistent, {checkpoint.size} entries")


@command(app)
def monitor(
    *,
    organization: Organization = None,
    connection: Connection,
    trust: Trust,
    ordered: Annotated[
        Path | None,
        typer.Option("--ordered", metavar="FILE", help="The ids of the Codes that you had revoked, one a line."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIMESTAMP", help="When the log began. Codes that had ended before need no entry."
        ),
    ] = None,
    certificates: Annotated[
        list[Path] | None,
        typer.Option(
            "--certificate",
            metavar="FILE",
            help="The certificate of a project or organisation that you had deleted; may be repeated.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify the whole log, that each Code of your organisation is in it, and that you ordered each revocation.

    Exit status as of `soundmark log verify`. Run it daily with a state file, so that it also notices a Code that the
    service no longer lists. Only a deletion certificate that is in the log explains that: give it once.
    """
    began: datetime | None = None if since is None else read_moment(since)
    allowed = None if ordered is None else _read_ids(ordered)
    address = find_service(connection).base_url
    deletions = read_deletions(certificates or (), address)
    before = read_others(trust.state).get("codes", {})
    at, codes = SystemClock().now(), list[OwnCode]()
    # Nothing is left of a deleted organisation, its keys included.
    if all(deletion.certificate.subject_type == "project" for deletion in deletions):
        with open_client(connection, organization) as client:
            codes = read_codes(client, before)
    logged = LoggedCodes()
    checkpoint, known = _examine(address, trust, logged, keep=False)
    try:
        deleted = judge_unlisted(before, codes, logged, deletions, ordered=allowed)
        revoked = judge_codes(codes, logged, at=at, ordered=allowed, since=began)
    except LogFault as fault:
        raise Refused(str(fault)) from None
    keep_known(trust.state, known, codes=describe_codes(codes))
    if as_json:
        show_json({"size": checkpoint.size, "codes": len(codes), "revoked": revoked, "deleted": deleted})
        return
    typer.echo(f"{checkpoint.origin}: {len(codes)} Codes of yours are in the log, {len(revoked)} of them revoked")
    for certificate_id, xr_ids in deleted.items():
        for xr_id in xr_ids:
            typer.echo(f"{xr_id} is no longer listed: {certificate_id}, which is in the log, says that it was deleted")


@app.command()
def witness(
    state: Annotated[Path, typer.Option("--state", metavar="FILE", help="What the witness keeps, its key included.")],
    log_vkey: Annotated[
        list[str], typer.Option("--log", metavar="VKEY", help="The key of a log to witness; may be repeated.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="The name of a new witness, as a URL without scheme.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 picks a free one.")] = 8084,
) -> None:
    """Cosign the checkpoints of logs, if each extends what this witness has seen, until Ctrl-C.

    It prints its key, which the log's operator adds to SOUNDMARK_TRANSPARENCY_WITNESSES. The operator of a log must not
    run its witnesses.
    """
    from soundmark.cli.log_witness_server import serve_witness  # noqa: PLC0415 - a server, which no other command needs

    if name is not None and not is_name(name):
        raise typer.BadParameter("a name has 1 to 255 characters without spaces and plus signs")
    serve_witness(state, name, log_vkey, host, port)


@app.command("rotate-key")
def rotate(data_dir: DataDir = None) -> None:
    """Make a new key of the log, which signs beside the earlier ones from the next checkpoint on."""
    key = _run(read_settings(KeysSettings, data_dir), rotate_key)
    typer.echo(
        f"{key} signs from the next checkpoint on; give it to every auditor and witness before you retire another"
    )


@app.command("retire-key")
def retire(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id: the middle part of its vkey.")],
    data_dir: DataDir = None,
) -> None:
    """Destroy the private half of a key of the log, once another key has signed what is published."""
    _run(read_settings(CoreDatabaseSettings, data_dir), lambda ctx: retire_key(ctx, key_id))
    typer.echo(f"{key_id} is retired")


@app.command()
def renew(
    origin: Annotated[str, typer.Option("--origin", metavar="NAME", help="The new log's origin, never used before.")],
    data_dir: DataDir = None,
) -> None:
    """Begin a new log with a new key, in place of one that is stopped. The entries of the old one are deleted.

    Everything that is active now is entered into it. Every auditor, witness and receiver needs the new key.
    """
    if not is_name(origin):
        raise typer.BadParameter("an origin has 1 to 255 characters without spaces and plus signs")
    key = _run(read_settings(settings.KeysSettings, data_dir), lambda ctx: commands.renew(ctx, origin))
    typer.echo(f"the log is {origin} from now on; its key is {key}")


@app.command()
def resume(
    may_fork: Annotated[
        bool,
        typer.Option("--i-know-it-may-fork", help="Resume, although the log may once have had more entries."),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Let a restored log go on without witnesses. If it had more entries, anybody who saw them can prove a fork."""
    if not may_fork:
        raise Refused("nobody confirms what the log had before; add --i-know-it-may-fork, or `soundmark log renew`")
    _run(read_settings(CoreDatabaseSettings, data_dir), commands.resume)
    typer.echo("the log goes on")


def _examine(base_url: str, trust: Trust, logged: LoggedCodes, *, keep: bool = True) -> tuple[Checkpoint, KnownLog]:
    """Verify the log and collect what it says of Codes; return its checkpoint, and what the next run needs.

    Raises: Refused.
    """
    known = read_known(trust.state)
    with open_log(base_url) as source:
        try:
            believed, is_own_claim = find_trust(
                source, known, vkeys=trust.vkey or (), witnesses=trust.witness or (), quorum=trust.quorum
            )
            if is_own_claim:
                keys = " ".join(map(str, believed.keys))
                typer.echo(f"without --vkey, the keys are the log's own claim: {keys}", err=True)
            checkpoint, text = source.read_checkpoint(believed)
            earlier = None if known is None else parse_checkpoint(known.checkpoint).checkpoint
            with progress_of(MofNCompleteColumn()) as bar:
                task = bar.add_task("Verifying", total=checkpoint.size)
                for _, entries in source.read_all(
                    checkpoint, earlier, lambda done, whole: bar.update(task, completed=done, total=whole)
                ):
                    logged.add(entries)
        except LogFault as fault:
            raise Refused(str(fault)) from None
    found = KnownLog(text, tuple(map(str, believed.keys)))
    if keep:
        keep_known(trust.state, found)
    return checkpoint, found


def _read_ids(file: Path) -> frozenset[str]:
    try:
        return frozenset(file.read_text("utf-8").split())
    except (OSError, ValueError):
        raise Refused(f"{file} cannot be read") from None


def _run(given: CoreDatabaseSettings, work: Callable[[Context], Awaitable[T]]) -> T:
    try:
        return run_on_core(given, "log", work)
    except LogRefused as refused:
        raise Refused(str(refused)) from None
    except SealBroken as broken:
        raise Refused(f"this master key does not open the stored keys: {broken}") from None
