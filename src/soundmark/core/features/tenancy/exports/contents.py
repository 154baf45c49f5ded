"""The contents of an archive: read page by page from one snapshot, and written while the next page is read."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from soundmark.core.context import RequestContext
from soundmark.core.domain.codes.code import Code
from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.domain.tenancy.scope import TenantScope
from soundmark.core.features.tenancy.exports.archive_file import ArchiveFile, ArchiveWriter
from soundmark.core.features.tenancy.exports.code_records import CodeRenderer, broken_code_problem
from soundmark.core.features.tenancy.exports.subject import ArchiveSubject
from soundmark.core.problems import OrganizationNotFound, ProjectNotFound
from soundmark.core.steps.signed_codes import read_signed_codes
from soundmark.core.store.codes import campaigns, code_lists, signing_keys
from soundmark.core.store.tenancy import api_keys, members, organizations, projects
from soundmark.core.views.campaigns import CampaignView
from soundmark.core.views.integrations import ArchivedIntegration
from soundmark.core.views.signing_keys import key_history_view
from soundmark.core.views.tenancy import ArchivedOrganization, MemberView, ProjectView, archived_api_key
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.pacing import Pacer
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.private.integrations import IntegrationResponse
from soundmark.wire.shape import Wire

# A few hundred kilobytes of Codes: two milliseconds in which the event loop reads them, and six in the thread.
PAGE_ROWS: Final = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """Where the records of an archive come from: the snapshot `tx`, whose moment is `now`, and Audience before it.

    `require_reader` raises if the client has disconnected.
    """

    ctx: RequestContext
    tx: Tx
    scope: TenantScope
    subject: ArchiveSubject
    integrations: Sequence[IntegrationResponse]
    now: datetime
    require_reader: Callable[[], Awaitable[None]]


async def write_contents(source: ArchiveSource, file: ArchiveFile, sealing_key: SigningKey) -> None:
    """Write every member of the archive but the seal, in the order of the contract.

    The keys in it include `sealing_key`, which was active when the snapshot began.

    Raises: OrganizationNotFound; ProjectNotFound; InternalError for a Code that does not verify, and for a full disk;
        the problem of an archive that is too large.
    Source: contract, section 8.
    """
    writer = ArchiveWriter(file)
    keys = source.ctx.live_keyring.ours(await signing_keys.list_all(source.tx))
    if source.subject.project_id is None:
        await _begin_organization(source, writer)
    else:
        await _begin_project(source, writer, source.subject.project_id)
    tx, scope, project_id = source.tx, source.scope, source.subject.project_id
    campaign_pages = campaigns.list_oldest_first(tx, scope, project_id=project_id, rows_max=PAGE_ROWS)
    await _write_rows(writer, "campaigns", campaign_pages, CampaignView.from_record)
    public_keys = {key.key_id: key.public_key for key in keys if key.activated_at is not None}
    renderer = CodeRenderer(public_keys, sealing_key, source.now)
    await _write_codes(source, writer, renderer)
    key_pages = api_keys.list_oldest_first(tx, scope, project_id=project_id, rows_max=PAGE_ROWS)
    await _write_rows(writer, "api_keys", key_pages, lambda key: archived_api_key(key, source.now))
    await asyncio.to_thread(_write_integrations, writer, source.integrations)
    await asyncio.to_thread(_write_keys, writer, keys, renderer.used_key_ids | {sealing_key.key_id})
    writer.write_member("counts", msgspec.json.encode(writer.counts))


async def _begin_organization(source: ArchiveSource, writer: ArchiveWriter) -> None:
    tx, scope = source.tx, source.scope
    assert scope.role is not None, "the policy lets no key do this"
    organization = await organizations.find(tx, scope, role=scope.role)
    if organization is None:
        raise OrganizationNotFound  # Deleted since the caller was authorised.
    writer.begin(_head(source))
    writer.write_member("organization", _encode(ArchivedOrganization.from_record(organization)))
    await _write_rows(
        writer, "members", members.list_oldest_first(tx, scope, rows_max=PAGE_ROWS), MemberView.from_record
    )
    await _write_rows(
        writer, "projects", projects.list_oldest_first(tx, scope, rows_max=PAGE_ROWS), ProjectView.from_record
    )


async def _begin_project(source: ArchiveSource, writer: ArchiveWriter, project_id: str) -> None:
    project = await projects.find(source.tx, source.scope, project_id)
    if project is None:
        raise ProjectNotFound
    writer.begin(_head(source))
    writer.write_member("organization_id", msgspec.json.encode(project.organization_id))
    writer.write_member("project", _encode(ProjectView.from_record(project)))


def _head(source: ArchiveSource) -> bytes:
    return msgspec.json.encode({"format": source.subject.format, "exported_at": format_timestamp(source.now)})


async def _write_rows(
    writer: ArchiveWriter, name: str, pages: AsyncGenerator[list[T], None], view: Callable[[T], Wire]
) -> None:
    def write(rows: Sequence[T]) -> None:
        writer.add(name, [_encode(view(row)) for row in rows])

    writer.open_list(name)
    await write_pages(pages, write)
    writer.close_list(name)


async def _write_codes(source: ArchiveSource, writer: ArchiveWriter, renderer: CodeRenderer) -> None:
    def write(codes: Sequence[Code]) -> None:
        writer.add("codes", renderer.render(codes))

    writer.open_list("codes")
    await write_pages(_read_codes(source), write)
    writer.close_list("codes")


async def _read_codes(source: ArchiveSource) -> AsyncGenerator[list[Code], None]:
    """Yield the Codes with their signed records."""
    project_id = source.subject.project_id
    pages = code_lists.list_oldest_first(source.tx, source.scope, project_id=project_id, rows_max=PAGE_ROWS)
    async with aclosing(pages):
        async for listed in pages:
            await source.require_reader()
            codes = await read_signed_codes(source.tx, listed)
            if len(codes) < len(listed):
                raise broken_code_problem()  # The alarm was raised for each that is missing.
            yield codes


def _write_integrations(writer: ArchiveWriter, integrations: Sequence[IntegrationResponse]) -> None:
    writer.open_list("audience_integrations")
    for begin in range(0, len(integrations), PAGE_ROWS):
        page = integrations[begin : begin + PAGE_ROWS]
        writer.add(
            "audience_integrations", [_encode(ArchivedIntegration.from_record(integration)) for integration in page]
        )
    writer.close_list("audience_integrations")


def _write_keys(writer: ArchiveWriter, keys: Sequence[SigningKeyRecord], key_ids: set[str]) -> None:
    """Write the JWK Set of the named keys."""
    shown = [_encode(key) for key in key_history_view(keys) if key.kid in key_ids]
    assert len(shown) == len(key_ids), "every key that signed is published"
    writer.write_member("verification_keys", b'{"keys":[\n%b\n]}' % b",\n".join(shown))


def _encode(view: Wire) -> bytes:
    return view.model_dump_json().encode()


async def write_pages(pages: AsyncGenerator[list[T], None], write: Callable[[Sequence[T]], None]) -> None:
    """Write each page in a thread while the next one is read, and rest while the event loop is busy.

    A page that is being written is always waited for, so that nobody writes to a closed file.
    """
    pacer = Pacer()
    async with aclosing(pages):
        rows = await anext(pages, None)
        while rows is not None:
            writing = asyncio.ensure_future(asyncio.to_thread(write, rows))
            try:
                rows = await anext(pages, None)
            finally:
                await asyncio.wait([writing])
            await writing
            await pacer.rest()
