"""`soundmark platform entitle`: an operator's Audience entitlement for one organisation."""

from datetime import datetime
from typing import Annotated

import typer

from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.outcome import Refused
from soundmark.core.domain.audience import EntitledMode, Entitlement
from soundmark.core.features.platform.entitle import EntitleRefused
from soundmark.core.features.platform.entitle import entitle as entitle_organization
from soundmark.kit.clock import SystemClock
from soundmark.kit.entropy import SystemEntropy
from soundmark.kit.postgres import Database
from soundmark.kit.strict_json import INTEGER_MAX
from soundmark.kit.timestamps import format_timestamp, parse_timestamp
from soundmark.settings import CoreDatabaseSettings


def _moment(text: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def entitle(
    organization: Annotated[str, typer.Argument(metavar="ORG", help="The organisation's id.")],
    mode: Annotated[EntitledMode, typer.Option(help="What kind of integration it may have.")],
    monthly_events: Annotated[
        int, typer.Option(metavar="N", min=0, max=INTEGER_MAX, help="Events that it may measure in a calendar month.")
    ],
    until: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIMESTAMP",
            parser=_moment,
            help="When that ends, such as 2027-01-01T00:00:00Z; without it, never. A moment that is past ends it now.",
        ),
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Let an organisation measure audiences beyond a demo, in the place of what it might before in the same mode.

    Its audit log tells. The worker of Core tells Audience, which refuses by itself what goes beyond it.
    """
    given = read_settings(CoreDatabaseSettings, data_dir)

    async def command(db: Database) -> Entitlement:
        return await entitle_organization(
            db,
            SystemClock(),
            SystemEntropy(),
            organization,
            mode,
            monthly_event_quota=monthly_events,
            ends_at=until,
        )

    try:
        done = run_on_core(given, "platform", command)
    except EntitleRefused as refused:
        raise Refused(str(refused)) from None
    end = "without an end" if done.ends_at is None else f"until {format_timestamp(done.ends_at)}"
    typer.echo(f"{organization} may measure {done.monthly_event_quota} events a month as {mode}, {end}")
