"""`soundmark audit`: verify that nobody altered an organisation's audit log."""

from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
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


async def _verify(ctx: Context, organization_id: str) -> Verification:
    async with ctx.db.snapshot(tenant=organization_id) as tx:
        if await audit_chain.find_tenant(tx, organization_id) is None:
            raise _unknown(organization_id)
        key = await read_chain_key(tx, ctx.sealer)
        if key is None:
            raise Refused("the audit chain has no key yet; Core creates it when it starts")
        return await verify_chain(tx, key, organization_id)


def _unknown(organization_id: str) -> Refused:
    # A malformed id may hold any characters, line ends included.
    return Refused(f"there is no organisation {organization_id!a}")
