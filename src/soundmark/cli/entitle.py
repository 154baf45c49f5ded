"""`soundmark platform entitle`: grant entitlements to one organisation."""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

import typer

from soundmark.cli import Refused
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.options import read_moment
from soundmark.core.context import Context
from soundmark.core.features.platform.entitlements.service import EntitleRefused, Grant
from soundmark.core.features.platform.entitlements.service import entitle as entitle_organization
from soundmark.kit.http.requests.strict_json import INTEGER_MAX
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.settings import CoreDatabaseSettings
from soundmark.wire.shape import EntitledMode


def entitle(
    organization: Annotated[str, typer.Argument(metavar="ORG", help="The organisation's id.")],
    mode: Annotated[
        EntitledMode | None, typer.Option(help="The mode in which it can measure; requires --monthly-events.")
    ] = None,
    monthly_events: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=INTEGER_MAX,
            help="Events that it can measure in a calendar month (UTC); requires --mode.",
        ),
    ] = None,
    monthly_codes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=INTEGER_MAX,
            help="Codes that it can issue in a calendar month (UTC), instead of the Starter plan's 100.",
        ),
    ] = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIMESTAMP",
            parser=read_moment,
            help="When the entitlement ends, such as 2027-01-01T00:00:00Z; a past time ends it now. Default: never.",
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Set an organisation's quota of Codes, and let it measure audiences beyond a demo.

    Each entitlement replaces the previous one from this command, and is recorded in the organisation's audit log. The
    quota of Codes applies immediately; when it ends, the Starter plan's quota applies again. Core's worker sends the
    entitlement of a mode to Audience, which refuses events beyond it.
    """
    grant = Grant(monthly_codes, _event_quotas(mode, monthly_events), until)
    if grant.monthly_code_quota is None and not grant.monthly_event_quotas:
        raise typer.BadParameter("give --monthly-codes, or --mode with --monthly-events, or both")
    given = read_settings(CoreDatabaseSettings, data_dir)

    async def command(ctx: Context) -> None:
        await entitle_organization(ctx, organization, grant)

    try:
        run_on_core(given, "platform", command)
    except EntitleRefused as refused:
        raise Refused(str(refused)) from None
    for line in _lines(organization, grant):
        typer.echo(line)


def _event_quotas(mode: EntitledMode | None, monthly_events: int | None) -> dict[EntitledMode, int]:
    if mode is None and monthly_events is None:
        return {}
    if mode is None or monthly_events is None:
        raise typer.BadParameter("--mode and --monthly-events belong together")
    return {mode: monthly_events}


def _lines(organization: str, grant: Grant) -> Iterator[str]:
    end = "without an end date" if grant.ends_at is None else f"until {format_timestamp(grant.ends_at)}"
    if grant.monthly_code_quota is not None:
        yield f"{organization} can issue {grant.monthly_code_quota} Codes a month, {end}"
    for mode, monthly_event_quota in grant.monthly_event_quotas.items():
        yield f"{organization} can measure {monthly_event_quota} events a month as {mode}, {end}"
