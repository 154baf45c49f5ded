"""`soundmark audit`: verify that nobody altered an organisation's audit log, as its operator or as its owner."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from soundmark_sdk import AuditLogRejected, LogPolicy, ReceiverFailure, VerifiedAuditLog, verify_audit_log

from soundmark.cli import Refused
from soundmark.cli.api import show_json
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.intents import printable
from soundmark.cli.log_source import LogSource, open_log
from soundmark.cli.options import AsJson, BaseUrl, Connection, UpDir
from soundmark.cli.service import find_service
from soundmark.core.context import Context
from soundmark.core.domain.tenancy.audit_chain import Verification
from soundmark.core.features.tenancy.audit_log.verification import verify as verify_chain
from soundmark.core.live.audit_chain import read_chain_key
from soundmark.core.store.tenancy import audit_chain
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.text.ids import may_be_id
from soundmark.settings import KeysSettings

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.callback()
def audit() -> None:
    """Verify the audit log of an organisation."""


@app.command()
def verify(
    organization_id: Annotated[str, typer.Argument(metavar="ORG", help="The organisation's id.")],
    data_dir: DataDir = None,
) -> None:
    """Recompute the organisation's audit chain and compare it with the seals of the entries.

    Exit status 0 if every entry is unaltered, or too new to have a seal yet. Exit status 1 if an entry was altered,
    deleted, inserted or moved; the error message names the first broken entry.
    """
    given = read_settings(KeysSettings, data_dir)
    if not may_be_id(organization_id):
        raise _unknown(organization_id)
    try:
        found = run_on_core(given, "audit", lambda ctx: _verify(ctx, organization_id))
    except SealBroken as broken:
        raise Refused(f"this master key does not open the key of the audit chain: {broken}") from None
    if not found.is_verified:
        where = "its place is unknown" if found.first_broken is None else f"first broken entry: {found.first_broken}"
        raise Refused(f"the audit log of {organization_id} was altered; {where}")
    typer.echo(f"{organization_id}: verified, {found.entries} entries, {found.unsealed} of them not sealed yet")


@app.command("verify-download")
def verify_download(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A whole audit log as NDJSON, downloaded unfiltered.")],
    *,
    base_url: BaseUrl = None,
    data_dir: UpDir = None,
    vkey: Annotated[
        list[str] | None,
        typer.Option("--vkey", metavar="VKEY", help="A key of the log that you trust; may be repeated."),
    ] = None,
    logged_entries: Annotated[
        int | None,
        typer.Option(
            "--logged-entries",
            metavar="N",
            min=1,
            help="The `entries` of the `logged_head` that the owner has: where to look first for a head.",
        ),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask the transparency log.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify a downloaded audit log without any key of the service: its chain of hashes, and the log that has its head.

    Exit status 0 if every entry is what was chained. Exit status 1 if not; the error message names the first entry that
    is altered, missing or moved. Also 1 if the log does not answer, or has no head of this chain, unless --offline.
    """
    if offline and (vkey or base_url or data_dir or logged_entries):
        raise typer.BadParameter("--offline takes no option about the log")
    if offline:
        with _open(file) as lines:
            found = _verify_lines(file, lines)
    else:
        with _open(file) as lines, open_log(find_service(Connection(base_url, data_dir=data_dir)).base_url) as source:
            policy = _find_policy(source, vkey)
            found = _verify_lines(file, lines, policy, source.read_proof, logged_entries)
        if found.entries and not found.covered:
            raise Refused(
                f"{file}: the chain is whole, but the log {policy.origin} has no head of its newest entries; "
                "--logged-entries says where to look for an older one"
            )
    if as_json:
        show_json({"entries": found.entries, "unchained": found.unchained, "covered": found.covered})
        return
    if found.covered is None:
        compared = "not compared with the log"
    else:
        compared = f"{found.entries - found.covered} of them below no head in the log yet"
    typer.echo(
        printable(f"{file}: verified, {found.entries} entries, {compared}; {found.unchained} more have no place yet")
    )


def _find_policy(source: LogSource, vkeys: list[str] | None) -> LogPolicy:
    texts = tuple(vkeys or source.read_vkeys())
    named = printable(" ".join(texts))
    try:
        policy = LogPolicy(texts)
    except ValueError as error:
        refused = Refused if not vkeys else typer.BadParameter
        raise refused(f"{named}: {error}") from None
    if not vkeys:
        typer.echo(f"without --vkey, the keys are the log's own claim: {named}", err=True)
    return policy


def _open(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise _unreadable(file, error) from None


def _verify_lines(
    file: Path,
    lines: BinaryIO,
    policy: LogPolicy | None = None,
    fetch_proof: Callable[[str], bytes | None] | None = None,
    logged_entries: int | None = None,
) -> VerifiedAuditLog:
    try:
        return verify_audit_log(lines, policy=policy, fetch_proof=fetch_proof, logged_entries=logged_entries)
    except OSError as error:  # Of the file: a failure of the log is a ReceiverFailure.
        raise _unreadable(file, error) from None
    except AuditLogRejected as rejected:
        which = "" if rejected.entry_id is None else f" ({printable(rejected.entry_id)})"
        raise Refused(f"{file} is not what was chained: {rejected.explanation}{which}") from None
    except ReceiverFailure as failure:
        raise Refused(f"{file}: {failure.explanation}") from None


async def _verify(ctx: Context, organization_id: str) -> Verification:
    async with ctx.db.snapshot(tenant=organization_id) as tx:
        if await audit_chain.find_tenant(tx, organization_id) is None:
            raise _unknown(organization_id)
        key = await read_chain_key(tx, ctx.sealer)
        if key is None:
            raise Refused("the audit chain has no key yet; Core creates it when it starts")
        return await verify_chain(tx, key, organization_id)


def _unreadable(file: Path, error: OSError) -> Refused:
    return Refused(f"{file} cannot be read: {error.strerror}")


def _unknown(organization_id: str) -> Refused:
    # A malformed id may hold any characters, line ends included.
    return Refused(f"there is no organisation {organization_id!a}")
