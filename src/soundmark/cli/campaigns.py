"""`soundmark campaigns`: groups of Codes, which can be stopped at once."""

from datetime import datetime
from typing import Annotated

import typer
from soundmark_sdk.client.records import Campaign
from soundmark_sdk.client.requests import UNCHANGED, Unchanged

from soundmark.cli.api import open_client, show_facts, show_json, show_made, show_outcome, show_page
from soundmark.cli.options import OrganizationCall, Paging, ProjectCall, Quiet, command, read_moment
from soundmark.kit.text.timestamps import format_timestamp

app = typer.Typer(add_completion=False, no_args_is_help=True)

CampaignId = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign's id.")]
StartsAt = Annotated[
    datetime | None,
    typer.Option(parser=read_moment, metavar="TIME", help="When Codes can first be issued under it (RFC 3339)."),
]
EndsAt = Annotated[
    datetime | None,
    typer.Option(parser=read_moment, metavar="TIME", help="When Codes can no longer be issued under it (RFC 3339)."),
]
_HEADINGS = ("Campaign", "Name", "Status", "Opens", "Closes", "Created")


@app.callback()
def campaigns() -> None:
    """Create, list, change, archive, stop and summarise campaigns, over Core's API."""


@command(app)
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that no other campaign of the project has.")],
    *,
    starts_at: StartsAt = None,
    ends_at: EndsAt = None,
    quiet: Quiet = False,
    call: ProjectCall,
) -> None:
    """Create a campaign. This requires a person's access token or, on this machine, the operator token."""
    with open_client(call.connection, call.organization, call.project) as client:
        campaign = client.campaigns.create(name, starts_at=starts_at, ends_at=ends_at)
    show_made(campaign, _HEADINGS, _row(campaign), as_json=call.as_json, quiet=quiet)


@command(app, "list")
def list_campaigns(*, paging: Paging, call: ProjectCall) -> None:
    """List the campaigns of a project, newest first."""
    with open_client(call.connection, call.organization, call.project) as client:
        page = client.campaigns.page(limit=paging.limit, cursor=paging.cursor)
    show_page(page, _HEADINGS, _row, as_json=call.as_json)


@command(app)
def update(
    campaign_id: CampaignId,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="A new name.")] = None,
    starts_at: StartsAt = None,
    no_start: Annotated[bool, typer.Option("--no-start", help="Remove the time of the start.")] = False,
    ends_at: EndsAt = None,
    no_end: Annotated[bool, typer.Option("--no-end", help="Remove the time of the end.")] = False,
    call: OrganizationCall,
) -> None:
    """Change the name or the schedule of an active campaign. Codes that were issued do not change.

    This requires a person's access token or, on this machine, the operator token.
    """
    if name is None and starts_at is None and ends_at is None and not (no_start or no_end):
        raise typer.BadParameter("give at least one change")
    begin, end = _choose("start", starts_at, is_removed=no_start), _choose("end", ends_at, is_removed=no_end)
    with open_client(call.connection, call.organization) as client:
        campaign = client.campaigns.update(
            campaign_id, name=UNCHANGED if name is None else name, starts_at=begin, ends_at=end
        )
    show_made(campaign, _HEADINGS, _row(campaign), as_json=call.as_json)


@command(app)
def archive(campaign_id: CampaignId, *, call: OrganizationCall) -> None:
    """End issuing under a campaign, for good. Its Codes stay valid; `stop` revokes them too.

    This requires a person's access token or, on this machine, the operator token. Repeating it is safe.
    """
    with open_client(call.connection, call.organization) as client:
        campaign = client.campaigns.archive(campaign_id)
    show_outcome(campaign, f"{campaign.id} is archived", as_json=call.as_json)


@command(app)
def stop(campaign_id: CampaignId, *, call: OrganizationCall) -> None:
    """Archive a campaign and revoke all its active Codes, immediately and permanently.

    There is no confirmation prompt, because this is for emergencies. Repeating it is safe.
    """
    with open_client(call.connection, call.organization) as client:
        stopped = client.campaigns.stop(campaign_id)
    line = f"{stopped.campaign.id} is archived; {_codes(stopped.revoked_count)} revoked now"
    if stopped.packs_valid_until is not None:
        until = format_timestamp(stopped.packs_valid_until)
        line += f"; receivers without a network answer from offline packs until {until}"
    show_outcome(stopped, line, as_json=call.as_json)


@command(app)
def summary(campaign_id: CampaignId, *, call: OrganizationCall) -> None:
    """Count a campaign's Codes by status."""
    with open_client(call.connection, call.organization) as client:
        found = client.campaigns.summary(campaign_id)
    if call.as_json:
        show_json(found.document)
        return
    counts = found.counts
    show_facts(
        [
            *zip(_HEADINGS, _row(found.campaign), strict=True),
            ("Issued", counts.issued),
            ("Active", counts.active),
            ("Expired", counts.expired),
            ("Revoked", counts.revoked),
            ("Measured", counts.audience_enabled),
            ("First issued", found.first_issued_at),
            ("Last issued", found.last_issued_at),
        ]
    )


def _choose(side: str, moment: datetime | None, *, is_removed: bool) -> datetime | Unchanged | None:
    """Return a new time, None to remove the one there is, or that it stays.

    Raises: typer.BadParameter.
    """
    if moment is not None and is_removed:
        raise typer.BadParameter(f"give either --{side}s-at or --no-{side}")
    return moment if moment is not None or is_removed else UNCHANGED


def _row(campaign: Campaign) -> tuple[str | datetime | None, ...]:
    return (
        campaign.id,
        campaign.name,
        campaign.status,
        campaign.starts_at,
        campaign.ends_at,
        campaign.created_at,
    )


def _codes(count: int) -> str:
    return "1 Code was" if count == 1 else f"{count} Codes were"
