"""The command that makes an archive.

Its phases:

1. Read every Audience integration from Audience, outside any transaction.
2. Write everything else from one snapshot of Core's database, then the seal, into a temporary file. The snapshot's
   transaction holds the lock that keeps other processes from exporting from the organisation.
3. Judge the caller's authority again and record the export, once the file is whole. A refused export leaves no entry.

The file is sent afterwards, so that no slow reader holds a snapshot open.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.tenancy.exports.archive_file import ArchiveFile
from soundmark.core.features.tenancy.exports.contents import ArchiveSource, write_contents
from soundmark.core.features.tenancy.exports.sealing import seal_archive
from soundmark.core.features.tenancy.exports.subject import ArchiveSubject
from soundmark.core.problems import ResourceDeletionInProgress
from soundmark.core.steps import audit
from soundmark.core.steps.cells import read_audience
from soundmark.core.steps.log import log_document
from soundmark.core.steps.tenancy import hold_authority, hold_project, require_project
from soundmark.core.store.tenancy import closures, organizations
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.private.integrations import IntegrationResponse

INTEGRATIONS_MAX: Final = 20_000  # In one archive: some 30 MB of memory. Everything else is read in pages.
_RETRY_AFTER_S: Final = 30


@dataclass(frozen=True, slots=True)
class Archive:
    """A whole archive, whose position is at its end, and the SHA-256 digest of the file. `release` ends its export."""

    content: IO[bytes]
    digest: bytes
    release: Callable[[], None]


async def export_archive(
    ctx: RequestContext,
    scope: TenantScope,
    subject: ArchiveSubject,
    *,
    request_id: str,
    require_reader: Callable[[], Awaitable[None]],
) -> Archive:
    """Make the archive of an organisation or of one of its projects. The caller sends it, closes it and releases it.

    `require_reader` raises if the client has disconnected, which ends the work on the archive.

    Raises: ProjectNotFound; RateLimited while another export from the organisation is made or sent;
        AudienceUnavailable; OrganizationExportTooLarge, ProjectExportTooLarge; InternalError for a Code that does not
        verify, and for a full disk; ResourceDeletionInProgress once rows are deleted; what `hold_authority` raises.
    Source: API v1, "Organisations and projects", Exports; contract, section 8.
    """
    if subject.project_id is not None:
        async with ctx.db.transaction(tenant=scope.organization_id) as tx:
            await require_project(tx, scope, subject.project_id)
    if not await ctx.exports.take(scope.organization_id):
        raise _already_exporting()
    try:
        integrations = await _read_integrations(ctx, scope, subject, request_id)
        content, digest = await _make(ctx, scope, subject, integrations, require_reader)
    except BaseException:
        ctx.exports.release(scope.organization_id)
        raise
    return Archive(content, digest, lambda: ctx.exports.release(scope.organization_id))


async def _make(
    ctx: RequestContext,
    scope: TenantScope,
    subject: ArchiveSubject,
    integrations: Sequence[IntegrationResponse],
    require_reader: Callable[[], Awaitable[None]],
) -> tuple[IO[bytes], bytes]:
    """Return the whole file and its digest."""
    file = ArchiveFile(ctx.export_bytes_max, subject.too_large)
    try:
        async with ctx.exports.running:
            key = ctx.live_keyring.keyring.active  # Before the snapshot, which therefore shows when it became active.
            async with ctx.db.snapshot(tenant=scope.organization_id) as tx:
                await _require_no_other(tx, scope)
                await _require_complete(tx, scope, subject)
                now = ctx.clock.now()  # Read after the first statement, with which the snapshot begins.
                source = ArchiveSource(ctx, tx, scope, subject, integrations, now, require_reader)
                await write_contents(source, file, key)
            seal = await asyncio.to_thread(seal_archive, file, subject, key, now)
        await _record(ctx, scope, subject, seal)
    except BaseException:
        file.close()
        raise
    return file.content, file.digest()


async def _read_integrations(
    ctx: RequestContext, scope: TenantScope, subject: ArchiveSubject, request_id: str
) -> list[IntegrationResponse]:
    audience = await read_audience(ctx, scope.organization_id)
    if audience is None:
        return []
    listed = await audience.list_inventory(
        scope.organization_id, subject.project_id, count_max=INTEGRATIONS_MAX, request_id=request_id
    )
    if len(listed) > INTEGRATIONS_MAX:
        raise subject.too_large(f"An archive can contain at most {INTEGRATIONS_MAX:,} Audience integrations.")
    # Audience's database may sort ids differently.
    return sorted(listed, key=lambda integration: (integration.created_at, integration.id))


async def _record(ctx: RequestContext, scope: TenantScope, subject: ArchiveSubject, seal: dict[str, Any]) -> None:
    """Record the export and log its seal, unless the caller has lost their authority or the project is gone."""
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        if subject.project_id is None:
            await hold_authority(tx, scope)
        else:
            await hold_project(tx, scope, subject.project_id)
        await audit.record(
            tx,
            scope,
            ctx.entropy,
            subject.action,
            now=ctx.clock.now(),
            project_id=subject.project_id,
            digest=seal["digest"],
        )
        await log_document(tx, canonicalize(seal))


async def _require_no_other(tx: Tx, scope: TenantScope) -> None:
    """Keep other processes from exporting from the organisation until the transaction ends."""
    if not await organizations.lock_export(tx, scope):
        raise _already_exporting()


async def _require_complete(tx: Tx, scope: TenantScope, subject: ArchiveSubject) -> None:
    """Refuse an archive of what is partly deleted, because its seal would say that it is complete.

    Raises: ResourceDeletionInProgress.
    """
    if await closures.find_deleting(tx, scope.organization_id, subject.project_id) is not None:
        raise ResourceDeletionInProgress("Its rows are being deleted, so an archive would not be complete.")


def _already_exporting() -> RateLimited:
    return RateLimited(
        "Another export from this organisation is in progress. Try again when it has finished.",
        headers={"retry-after": str(_RETRY_AFTER_S)},
    )
