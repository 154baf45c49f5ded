"""Many WAV files as one ZIP file: rendered into a temporary file, checked once more, then returned."""

import asyncio
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import aclosing
from typing import IO, Final

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.code import Code, ListedCode, frame_of
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.problems import AudioBundleTooLarge, AudioUnavailable, CodeNotActive, CodeNotFound
from soundmark.core.steps.signed_codes import read_signed_codes, verify_code
from soundmark.core.steps.tenancy import hold_authority, require_project
from soundmark.core.store.codes import codes
from soundmark.wire.private.audio import Protocol

BUNDLE_BYTES_MAX: Final = 64 * 1024 * 1024  # API v1, "Limits": the WAV files, without the overhead of the ZIP format.
RENDERING_S_MAX: Final = 60.0  # The longest timeout that can be configured for a private call.

_IN_MEMORY_BYTES_MAX: Final = 1024 * 1024
_LONG_AGO: Final = (
    1980,
    1,
    1,
    0,
    0,
    0,
)  # The earliest time in a ZIP file. A fixed time gives the same bytes for the same Codes.
_READABLE_FILE: Final = 0o100644 << 16  # The Unix mode, in the bits where a ZIP file keeps it.
_UNIX: Final = 3


async def bundle_codes(
    ctx: RequestContext,
    scope: TenantScope,
    project_id: str,
    xr_ids: Sequence[str],
    *,
    protocol: Protocol,
    request_id: str,
) -> IO[bytes]:
    """Return an uncompressed ZIP file with the WAV files of Codes, in the order of the request. The caller closes it.

    Caller, project and selection are checked before anything is rendered, and again afterwards, so that a Code that is
    revoked in the meantime is never returned.

    Raises: ProjectNotFound; CodeNotFound, also for a Code that does not verify; CodeNotActive; AudioBundleTooLarge;
        AudioUnavailable; what `hold_authority` raises.
    Source: API v1, "Codes"; contract, section 5.
    """
    selection = await _read(ctx, scope, project_id, xr_ids)
    content = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES_MAX)  # noqa: SIM115 - the caller closes it
    try:
        try:
            async with asyncio.timeout(RENDERING_S_MAX):
                await _write(ctx, selection, protocol, request_id, content)
        except TimeoutError:
            raise AudioUnavailable("The WAV files were not rendered in time.") from None
        await _judge_again(ctx, scope, project_id, xr_ids)
    except BaseException:
        content.close()
        raise
    return content


async def _read(ctx: RequestContext, scope: TenantScope, project_id: str, xr_ids: Sequence[str]) -> list[Code]:
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await require_project(tx, scope, project_id)
        listed = await codes.find_many(tx, scope, project_id, xr_ids)
        found = await read_signed_codes(tx, listed)
    by_id = {code.xr_id: code for code in found}
    selection = [await verify_code(ctx, by_id.get(xr_id)) for xr_id in xr_ids]
    _require_active(ctx, selection)
    return selection


async def _judge_again(ctx: RequestContext, scope: TenantScope, project_id: str, xr_ids: Sequence[str]) -> None:
    async with ctx.db.transaction(tenant=scope.organization_id) as tx:
        await hold_authority(tx, scope)
        await require_project(tx, scope, project_id)
        found = await codes.find_many(tx, scope, project_id, xr_ids)
    if len(found) < len(xr_ids):
        raise CodeNotFound
    _require_active(ctx, found)


def _require_active(ctx: RequestContext, selection: Sequence[Code | ListedCode]) -> None:
    now = ctx.clock.now()  # Read after the Codes, so that one that expired in the meantime is not active.
    if any(code.status(now) != "active" for code in selection):
        raise CodeNotActive


async def _write(
    ctx: RequestContext, selection: Sequence[Code], protocol: Protocol, request_id: str, content: IO[bytes]
) -> None:
    """Write the archive to `content`, one WAV file after the other, so that memory holds only a few at a time."""
    frames = [frame_of(code.broadcast_token) for code in selection]
    names = iter(selection)
    size_bytes = 0
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        async with aclosing(ctx.audio.render_row(frames, protocol, request_id=request_id)) as wavs:
            async for wav in wavs:
                size_bytes += len(wav)
                if size_bytes > BUNDLE_BYTES_MAX:
                    raise AudioBundleTooLarge
                archive.writestr(_entry(next(names).xr_id), wav)


def _entry(xr_id: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(f"{xr_id}.wav", _LONG_AGO)
    entry.external_attr = _READABLE_FILE
    entry.create_system = _UNIX
    return entry
