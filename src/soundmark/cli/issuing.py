"""The issuance of `soundmark codes issue`: judged first, in batches, and so that it can be repeated."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import typer
from soundmark_sdk.client import ApiProblem, Client, ClientFailure, IssueRequest
from soundmark_sdk.client.records import Code, DryRun, ListedCode

from soundmark.cli import Refused
from soundmark.cli.api import explain_failure, progress_of, quota_return, show_json, show_table
from soundmark.cli.intents import format_intent
from soundmark.kit.text.timestamps import format_timestamp

HEADINGS: Final = ("XR Code", "Frame", "Status", "Issued", "Expires")


def show_issued(issued: list[Code], document: Any, *, as_json: bool, quiet: bool) -> None:
    """Print the Codes that were issued: as a table, as their JSON `document`, or only their ids."""
    if quiet:
        for code in issued:
            typer.echo(code.xr_id)
    elif as_json:
        show_json(document)
    else:
        show_table(HEADINGS, map(code_row, issued))


def code_row(code: ListedCode) -> tuple[str | datetime | None, ...]:
    """Return the cells of a Code below `HEADINGS`."""
    return (code.xr_id, code.broadcast_frame, code.status, code.issued_at, code.expires_at)


def row_with_intent(code: ListedCode) -> tuple[str | datetime | None, ...]:
    """Return the cells of a Code in a list with intents: those below `HEADINGS`, and its intent."""
    return (*code_row(code), None if code.intent is None else format_intent(code.intent))


# API v1, "Limits": of a batch, of revoke-batch and of the audio bundle.
AT_ONCE_MAX: Final = 100
_QUOTA_EXCEEDED: Final = "quota_exceeded"


def judge_issuance(client: Client, request: IssueRequest, count: int | None) -> DryRun:
    """Return whether `count` Codes could be issued now: the service judges one batch, its remaining quota the rest."""
    if count is None:
        return client.codes.dry_run(request)
    verdict = client.codes.dry_run_batch(request, min(count, AT_ONCE_MAX))
    if not verdict.would_issue or count <= verdict.quota_remaining:
        return verdict
    document = {**verdict.document, "would_issue": False, "code": _QUOTA_EXCEEDED}
    return replace(verdict, would_issue=False, code=_QUOTA_EXCEEDED, document=document)


def show_verdict(verdict: DryRun, *, as_json: bool) -> None:
    """Print whether an issuance would succeed.

    Raises: Refused if it would not.
    """
    if as_json:
        show_json(verdict.document)
    if not verdict.would_issue:
        raise Refused(
            f"it would be refused: {verdict.code}; {verdict.quota_remaining} Codes left of this month's quota"
        )
    if not as_json:
        typer.echo(f"it would be issued; {verdict.quota_remaining} Codes left of this month's quota")


def check_quota(verdict: DryRun) -> None:
    """Refuse an issuance that exceeds the month's quota, before a part of it is issued.

    Raises: Refused.
    """
    if verdict.code == _QUOTA_EXCEEDED:
        left = verdict.quota_remaining
        hint = f"--count {left} would succeed, and " if left else ""
        raise Refused(
            f"nothing was issued: {left} Codes left of this month's quota; {hint}the quota resets at {quota_return()}"
        )


def issue_batches(client: Client, request: IssueRequest, count: int, key: str, *, as_json: bool, quiet: bool) -> None:
    """Issue `count` Codes, a batch at a time. Each batch's key derives from the command's, so it can be repeated."""
    issued: list[Code] = []
    sizes = [min(AT_ONCE_MAX, count - begun) for begun in range(0, count, AT_ONCE_MAX)]
    try:
        with resumable_issuance(request, key, issued, count), progress_of() as bar:
            task = bar.add_task("Issuing", total=count)
            for number, size in enumerate(sizes, start=1):
                batch = client.codes.issue_batch(request, size, idempotency_key=f"{key}.{number}")
                issued += batch.data
                bar.update(task, completed=len(issued))
    finally:
        # Even after a failure: these Codes exist, so the user must see them.
        if issued:
            show_issued(issued, {"data": [code.document for code in issued]}, as_json=as_json, quiet=quiet)


@contextmanager
def resumable_issuance(request: IssueRequest, key: str, issued: list[Code], count: int) -> Iterator[None]:
    """If issuing in the block may have ended halfway, tell the user how to continue."""
    expires_at = format_timestamp(request.expires_at)
    go_on = (
        f"to continue without issuing anything twice, repeat the command within 24 hours with"
        f" --idempotency-key {key} --expires-at {expires_at}"
    )
    try:
        yield
    except ClientFailure as failure:
        if failure.unsettled is None and not issued:
            raise
        if isinstance(failure, ApiProblem) and failure.code == _QUOTA_EXCEEDED and failure.unsettled is None:
            go_on = _after_quota(len(issued), count)
        raise Refused(f"{explain_failure(failure).removesuffix('.')}; {go_on}") from None
    except KeyboardInterrupt:
        raise Refused(f"interrupted; {go_on}") from None


def _after_quota(issued_count: int, count: int) -> str:
    """Say what remains for another month; by then the service has forgotten the command's key."""
    left = count - issued_count
    return f"{issued_count} of {count} Codes were issued; then issue the other {left} with --count {left}"
