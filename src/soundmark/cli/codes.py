"""`soundmark codes`: issue, list, show, revoke and render Codes, over Core's API."""

import re
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer
from rich.progress import DownloadColumn
from soundmark_sdk.client import CodeFilters, CodeOrder, IssueRequest
from soundmark_sdk.client.records import Status

from soundmark.cli.api import open_client, progress_of, show_facts, show_json, show_more, show_page
from soundmark.cli.intents import format_intent, make_link, printable, read_intent
from soundmark.cli.issuing import (
    AT_ONCE_MAX,
    HEADINGS,
    check_quota,
    code_row,
    issue_batches,
    judge_issuance,
    resumable_issuance,
    row_with_intent,
    show_issued,
    show_verdict,
)
from soundmark.cli.options import (
    Connection,
    Organization,
    OrganizationCall,
    Paging,
    ProjectCall,
    ProjectFilter,
    Quiet,
    command,
    read_duration,
    read_moment,
)
from soundmark.cli.secret_output import Force, check_free
from soundmark.cli.whole_files import write_whole
from soundmark.kit.clock import SystemClock
from soundmark.kit.crypto.entropy import SystemEntropy

app = typer.Typer(add_completion=False, no_args_is_help=True)

# No command needs more, and a typing error should not use up a year's quota.
_COUNT_MAX: Final = 100_000
_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")
_KEY_OF_BATCHES_CHARS_MAX: Final = 120  # Each batch's key is the command's key with a suffix.
_KEY_BYTES: Final = 16  # As many random bits as an id has.


def _read_key(text: str) -> str:
    if _KEY.fullmatch(text) is None:
        raise typer.BadParameter("must be 16 to 128 characters: A-Z, a-z, 0-9, '.', '_', '~' and '-'")
    return text


SortTime: TypeAlias = Literal["issued_at", "expires_at"]
Direction: TypeAlias = Literal["desc", "asc"]
XrId = Annotated[str, typer.Argument(metavar="XR_ID", help="The Code's id.")]
XrIds = Annotated[list[str], typer.Argument(metavar="XR_ID...", help="The Codes' ids.")]
OwnProject = Annotated[
    str | None,
    typer.Option(
        "--project",
        metavar="PROJECT",
        help="Only Codes of this project. Default for several: the key's, or the one chosen with `soundmark use`.",
    ),
]


@dataclass(frozen=True, slots=True)
class IssueOptions:
    """The options that say what to issue."""

    issuer: Annotated[str, typer.Option(metavar="NAME", help="The issuer's name, which receivers show.")]
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="The address that the Code opens: an intent of the type link.")
    ] = None
    intent: Annotated[
        str | None,
        typer.Option(metavar="JSON", help='{"type": …, "action": …, "resource": {…}}, or @FILE, or @- for stdin.'),
    ] = None
    expires_in: Annotated[
        timedelta | None,
        typer.Option(parser=read_duration, metavar="LIFE", help="The time until it expires, such as 90m or 7d."),
    ] = None
    expires_at: Annotated[
        datetime | None, typer.Option(parser=read_moment, metavar="TIME", help="When it expires (RFC 3339).")
    ] = None
    campaign: Annotated[str | None, typer.Option(metavar="CAMPAIGN", help="The campaign to issue under.")] = None
    integration: Annotated[
        str | None, typer.Option(metavar="INTEGRATION", help="The Audience integration that measures it.")
    ] = None
    count: Annotated[
        int | None, typer.Option(min=1, max=_COUNT_MAX, help="Issue this many identical Codes, in batches of 100.")
    ] = None
    idempotency_key: Annotated[
        str | None,
        typer.Option(
            parser=_read_key,
            metavar="KEY",
            help="Makes it safe to repeat the command for 24 hours: it prints the same Codes again. Use it with "
            "--expires-at, because --expires-in gives a different time on each run.",
        ),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report whether it would succeed.")] = False


@dataclass(frozen=True, slots=True)
class CodeFilterOptions:
    """The options that say which Codes to list, named as in `CodeFilters`."""

    project_id: ProjectFilter = None
    campaign_id: Annotated[
        str | None, typer.Option("--campaign", metavar="CAMPAIGN", help="Show only this campaign's.")
    ] = None
    status: Annotated[Status | None, typer.Option(help="Show only those with this status.")] = None
    issuer: Annotated[str | None, typer.Option(metavar="NAME", help="Show only those of exactly this issuer.")] = None
    created_from: Annotated[
        datetime | None,
        typer.Option(parser=read_moment, metavar="TIME", help="Show only those issued at or after this time."),
    ] = None
    created_to: Annotated[
        datetime | None,
        typer.Option(parser=read_moment, metavar="TIME", help="Show only those issued before this time."),
    ] = None
    address_prefix: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Show only those whose intent's URL begins with this text."),
    ] = None


@app.callback()
def codes() -> None:
    """Issue, list, show, revoke and render Codes, over Core's API."""


@command(app)
def issue(*, options: IssueOptions, quiet: Quiet = False, call: ProjectCall) -> None:
    """Issue a Code, or several identical ones. If the connection breaks, the command retries and never issues twice.

    Give either --url or --intent, and either --expires-in or --expires-at. If the retries fail too, the last line of
    output names the options that complete the command when you run it again.
    """
    request = _read_request(options)
    count, key = options.count, options.idempotency_key or SystemEntropy().take(_KEY_BYTES).hex()
    with open_client(call.connection, call.organization, call.project) as client:
        if options.dry_run:
            show_verdict(judge_issuance(client, request, count), as_json=call.as_json)
        elif count is None:
            with resumable_issuance(request, key, [], 1):
                code = client.codes.issue(request, idempotency_key=key)
            show_issued([code], code.document, as_json=call.as_json, quiet=quiet)
        else:
            # Not with the caller's own key: the command may be a repeat whose first batches already used the quota.
            if count > AT_ONCE_MAX and options.idempotency_key is None:
                check_quota(judge_issuance(client, request, count))
            issue_batches(client, request, count, key, as_json=call.as_json, quiet=quiet)


@command(app, "list")
def list_codes(
    *,
    filters: CodeFilterOptions,
    sort: Annotated[SortTime | None, typer.Option(help="The time to sort by. Default: issued_at.")] = None,
    order: Annotated[
        Direction | None, typer.Option(help="Latest first (desc) or earliest first (asc). Default: desc.")
    ] = None,
    include_intent: Annotated[bool, typer.Option("--include-intent", help="Also show the intents.")] = False,
    paging: Paging,
    quiet: Quiet = False,
    call: OrganizationCall,
) -> None:
    """List Codes, newest first unless --sort and --order say otherwise."""
    # An older service knows no orders, so that the default is not sent.
    chosen = CodeOrder(sort=sort or "issued_at", order=order or "desc") if sort or order else None
    wanted = CodeFilters(**asdict(filters))
    with open_client(call.connection, call.organization) as client:
        page = client.codes.page(
            wanted, order=chosen, include_intent=include_intent, limit=paging.limit, cursor=paging.cursor
        )
    if quiet:
        for code in page.data:
            typer.echo(code.xr_id)
        show_more(page)
        return
    if include_intent:
        show_page(page, (*HEADINGS, "Intent"), row_with_intent, as_json=call.as_json)
    else:
        show_page(page, HEADINGS, code_row, as_json=call.as_json)


@command(app)
def show(
    xr_id: XrId,
    *,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT", help="Show it only if it belongs to this project.")
    ] = None,
    call: OrganizationCall,
) -> None:
    """Show one Code, regardless of its status."""
    with open_client(call.connection, call.organization) as client:
        code = client.codes.show(xr_id, project_id=project)
    if call.as_json:
        show_json(code.document)
        return
    show_facts(
        [
            *zip(HEADINGS, code_row(code), strict=True),
            ("Revoked", code.revoked_at),
            ("Project", code.project_id),
            ("Campaign", code.campaign_id),
            ("Issuer", code.issuer),
            ("Measured by", code.audience_integration_id),
            ("Intent", format_intent(code.intent, indent=2)),
        ]
    )


@command(app)
def revoke(xr_ids: XrIds, *, project: OwnProject = None, call: OrganizationCall) -> None:
    """Revoke one Code, or up to 100 Codes of one project: all of them or none. Repeating it is safe."""
    _check_selection(xr_ids)
    with open_client(call.connection, call.organization, project) as client:
        if project is None and len(xr_ids) == 1:
            code = client.codes.revoke(xr_ids[0])
            document, line = code.document, f"{code.xr_id} is {code.status}"
        else:
            done = client.codes.revoke_batch(xr_ids)
            document = done.document
            line = f"{done.revoked_count} revoked now, {done.unchanged_count} already revoked or expired"
    if call.as_json:
        show_json(document)
    else:
        typer.echo(line)


@command(app)
def wav(
    xr_ids: XrIds,
    *,
    organization: Organization = None,
    project: OwnProject = None,
    protocol: Annotated[
        int, typer.Option(min=3, max=5, help="3 ultrasound normal, 4 ultrasound fast, 5 ultrasound fastest.")
    ] = 4,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file to write. Default: XR_ID.wav or codes.zip.")
    ] = None,
    force: Force = False,
    connection: Connection,
) -> None:
    """Write the sound of an active Code as a WAV, or of up to 100 Codes of one project as a ZIP of WAVs."""
    _check_selection(xr_ids)
    spoken: Literal[3, 4, 5] = 3 if protocol == 3 else 4 if protocol == 4 else 5  # noqa: PLR2004 - these three and no more - as it is typed
    is_one = len(xr_ids) == 1
    path = out or Path(f"{_file_name(xr_ids[0])}.wav" if is_one else "codes.zip")
    check_free(path, force=force)
    with (
        open_client(connection, organization, project) as client,
        write_whole(path) as into,
        progress_of(DownloadColumn()) as bar,
    ):
        task = bar.add_task("Rendering", total=None)
        if is_one and project is not None:
            client.codes.show(xr_ids[0], project_id=project)  # Refused if it is of another project.
        if is_one:
            client.codes.wav(xr_ids[0], into, protocol=spoken)
        else:
            client.codes.audio_bundle(
                xr_ids,
                into,
                protocol=spoken,
                on_progress=lambda taken, whole: bar.update(
                    task, completed=taken, total=whole, description="Downloading"
                ),
            )
    typer.echo(printable(str(path)))


def _read_request(options: IssueOptions) -> IssueRequest:
    """Return what to issue.

    Raises: typer.BadParameter for options that contradict each other or have a wrong value; Refused.
    """
    if (options.url is None) == (options.intent is None):
        raise typer.BadParameter("give either --url or --intent")
    if (options.expires_in is None) == (options.expires_at is None):
        raise typer.BadParameter("give either --expires-in or --expires-at")
    request = IssueRequest(
        issuer=options.issuer,
        expires_at=options.expires_at or SystemClock().now() + (options.expires_in or timedelta()),
        intent=make_link(options.url) if options.intent is None else read_intent(options.intent),
        campaign_id=options.campaign,
        audience_integration_id=options.integration,
    )
    if options.dry_run and options.idempotency_key is not None:
        raise typer.BadParameter("--dry-run takes no --idempotency-key")
    if options.count is not None and len(options.idempotency_key or "") > _KEY_OF_BATCHES_CHARS_MAX:
        raise typer.BadParameter(f"with --count an idempotency key has at most {_KEY_OF_BATCHES_CHARS_MAX} characters")
    return request


def _check_selection(xr_ids: list[str]) -> None:
    """Refuse more Codes than one request may name, and duplicates.

    Raises: typer.BadParameter.
    """
    if len(xr_ids) > AT_ONCE_MAX or len(set(xr_ids)) < len(xr_ids):
        raise typer.BadParameter(f"give at most {AT_ONCE_MAX} Codes, without duplicates")


def _file_name(xr_id: str) -> str:
    # A malformed id may hold anything, even a path; the service will refuse it.
    return re.sub(r"[^A-Za-z0-9_-]", "_", xr_id)[:160]
