"""`soundmark audit`: whether an organisation's audit log is what was written."""

import asyncio
import logging
from typing import Annotated

import typer

from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.outcome import Refused
from soundmark.core.audit_chain import read_chain_key
from soundmark.core.domain.audit_chain import Verification
from soundmark.core.features.audit_log.verification import verify as verify_chain
from soundmark.core.store import audit_chain
from soundmark.kit import log
from soundmark.kit.entropy import SystemEntropy
from soundmark.kit.ids import may_be_id
from soundmark.kit.postgres import Database
from soundmark.kit.problems import DatabaseUnavailable
from soundmark.kit.schema_version import SchemaOutdated, require_current
from soundmark.kit.sealing import SealBroken, Sealer, parse_master_key
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
    """Recompute the chain into which the organisation's audit entries are sealed.

    Exit status 0 where every entry is as it was sealed or is so new that it waits for its seal; 1 where something was
    altered, deleted, inserted or put elsewhere, with the first broken entry in the one line that says so.
    """
    given = read_settings(KeysSettings, data_dir)
    log.configure(level=given.log_level, log_format=given.log_format, component="audit")
    # The one line that we say on failure is enough; the pool would put its own beside it.
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)
    if not may_be_id(organization_id):
        raise _unknown(organization_id)
    try:
        found = asyncio.run(_verify(given, organization_id))
    except DatabaseUnavailable:
        raise Refused("Core's database does not answer") from None
    except SchemaOutdated as outdated:
        raise Refused(str(outdated)) from None
    except SealBroken as broken:
        raise Refused(f"this master key does not open the key of the audit chain: {broken}") from None
    if not found.is_verified:
        where = "where, cannot be told" if found.first_broken is None else f"first broken entry: {found.first_broken}"
        raise Refused(f"the audit log of {organization_id} is not what was written; {where}")
    typer.echo(f"{organization_id}: verified, {found.entries} entries, {found.unsealed} of them not sealed yet")


async def _verify(given: KeysSettings, organization_id: str) -> Verification:
    sealer = Sealer(parse_master_key(given.master_key.reveal()), SystemEntropy())
    db = Database(given.core_database_url, pool_size=2, application_name="soundmark-audit")
    await db.open()
    try:
        await require_current(db, "soundmark.core")
        async with db.snapshot(tenant=organization_id) as tx:
            if await audit_chain.find_tenant(tx, organization_id) is None:
                raise _unknown(organization_id)
            key = await read_chain_key(tx, sealer)
            if key is None:
                raise Refused("the key of the audit chain is not there; Core makes it when it starts")
            return await verify_chain(tx, key, organization_id)
    finally:
        await db.close()


def _unknown(organization_id: str) -> Refused:
    # What is no id may hold anything, the end of the line included.
    return Refused(f"there is no organisation {organization_id!a}")
