"""`soundmark platform organizations`, `suspend` and `restore`: stopping an organisation that abuses the service."""

from collections.abc import Iterable
from typing import Annotated, Final

import typer
from pydantic import ValidationError

from soundmark.cli import Refused
from soundmark.cli.api import show_facts, show_json, show_table
from soundmark.cli.databases import run_on_core
from soundmark.cli.deployment import DataDir, read_settings
from soundmark.cli.options import AsJson
from soundmark.core.access.operator import OPERATOR
from soundmark.core.context import Context
from soundmark.core.domain.tenancy.organization import OrganizationStatus, PlatformOrganization
from soundmark.core.features.platform.organizations import service
from soundmark.core.features.platform.organizations.service import SuspendedOrganization
from soundmark.core.features.platform.organizations.wire import (
    REASON_CHARS_MAX,
    PlatformOrganizationPage,
    PlatformOrganizationView,
    PutSuspension,
    SuspendedOrganizationView,
)
from soundmark.core.problems import OrganizationNotFound
from soundmark.kit.text.ids import may_be_id
from soundmark.kit.text.paging import Page
from soundmark.settings import CoreDatabaseSettings

_LISTED_MAX: Final = 10_000
_Organization = Annotated[str, typer.Argument(metavar="ORG", help="The organisation's id.")]


def organizations(
    *,
    search: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only this id, or names that begin with this text.")
    ] = None,
    status: Annotated[OrganizationStatus | None, typer.Option(help="Only organisations of this status.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=_LISTED_MAX, help="How many to print at most.")] = 50,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List every organisation of the deployment, newest first, with its suspension and its reason."""
    given = read_settings(CoreDatabaseSettings, data_dir)

    async def command(ctx: Context) -> Page[PlatformOrganization]:
        return await service.list_organizations(ctx, search=search, status=status, before=None, limit=limit)

    page = run_on_core(given, "platform", command)
    if as_json:
        rows = [PlatformOrganizationView.from_record(row) for row in page.entries]
        show_json(PlatformOrganizationPage(data=rows, next_cursor=None).model_dump(mode="json"))
        return
    show_table(
        ("Organisation", "Name", "Created", "Deletion requested", "Suspended", "Reason"),
        [
            (row.id, row.name, row.created_at, row.deletion_requested_at, row.suspended_at, row.suspension_reason)
            for row in page.entries
        ],
    )
    if page.next_position is not None:
        typer.echo(f"there are more than {limit}; use --search, --status or --limit")


def suspend(
    organization: _Organization,
    *,
    reason: Annotated[
        str,
        typer.Option(metavar="TEXT", help=f"For administrators of the platform, 1 to {REASON_CHARS_MAX} characters."),
    ],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Suspend an organisation: its Codes stop resolving at once, and nothing can be added to it.

    Its events are refused within a minute. It can still read, revoke, export and leave. Its audit log records the
    suspension, and its owners get a mail without the reason. Suspending it again replaces the reason.
    """
    try:
        checked = PutSuspension(reason=reason).reason
    except ValidationError:
        raise typer.BadParameter(
            f"the reason must have 1 to {REASON_CHARS_MAX} characters, none of them a control character"
        ) from None
    given = read_settings(CoreDatabaseSettings, data_dir)

    async def command(ctx: Context) -> SuspendedOrganization:
        _require_id(organization)
        return await service.suspend_organization(ctx, organization, reason=checked, subject_id=OPERATOR.subject_id)

    try:
        suspended = run_on_core(given, "platform", command)
    except OrganizationNotFound:
        raise Refused(f"there is no organisation {organization}") from None
    view = SuspendedOrganizationView.from_record(suspended.organization, packs_valid_until=suspended.packs_valid_until)
    _show(view, (("Offline packs valid until", view.packs_valid_until or "there are none"),), as_json=as_json)


def restore(organization: _Organization, *, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """End the suspension of an organisation. Its Codes resolve again at once, its events are taken within a minute."""
    given = read_settings(CoreDatabaseSettings, data_dir)

    async def command(ctx: Context) -> PlatformOrganization:
        _require_id(organization)
        return await service.restore_organization(ctx, organization, subject_id=OPERATOR.subject_id)

    try:
        restored = run_on_core(given, "platform", command)
    except OrganizationNotFound:
        raise Refused(f"there is no organisation {organization}") from None
    _show(PlatformOrganizationView.from_record(restored), (), as_json=as_json)


def _require_id(organization: str) -> None:
    if not may_be_id(organization):
        raise OrganizationNotFound


def _show(view: PlatformOrganizationView, further: Iterable[tuple[str, object]], *, as_json: bool) -> None:
    if as_json:
        show_json(view.model_dump(mode="json"))
        return
    show_facts(
        (
            ("Organisation", view.id),
            ("Name", view.name),
            ("Suspended", view.suspended_at or "no"),
            ("Reason", view.suspension_reason),
            *further,
        )
    )
