"""Examples of archives, which the code writes and seals that writes the real ones."""

from collections.abc import Mapping
from typing import Final

import msgspec

from soundmark.core.edge.examples import (
    API_KEY,
    CAMPAIGN,
    CODE,
    EXAMPLE_KEY,
    INTEGRATION,
    ISSUED_AT,
    MEMBER,
    ORGANIZATION,
    PROJECT,
)
from soundmark.core.features.tenancy.exports.archive_file import ArchiveFile, ArchiveWriter
from soundmark.core.features.tenancy.exports.sealing import seal_archive
from soundmark.core.features.tenancy.exports.subject import ArchiveSubject, organization_subject, project_subject
from soundmark.core.views.archives import ArchiveKeys
from soundmark.core.views.campaigns import CampaignView
from soundmark.core.views.codes import detail_view
from soundmark.core.views.integrations import ArchivedIntegration
from soundmark.core.views.signing_keys import historic_key
from soundmark.core.views.tenancy import ArchivedOrganization, MemberView, ProjectView, archived_api_key
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import Wire

_BYTES_MAX: Final = 64 * 1024


def _write_archive(subject: ArchiveSubject, members: Mapping[str, str | Wire], records: Mapping[str, Wire]) -> bytes:
    """Return an archive with these members before its lists, and with one record in each list."""
    file = ArchiveFile(_BYTES_MAX, subject.too_large)
    try:
        writer = ArchiveWriter(file)
        writer.begin(msgspec.json.encode({"format": subject.format, "exported_at": format_timestamp(ISSUED_AT)}))
        for name, value in members.items():
            writer.write_member(name, _encode(value))
        for name, record in records.items():
            writer.open_list(name)
            writer.add(name, [_encode(record)])
            writer.close_list(name)
        shown = historic_key(
            EXAMPLE_KEY.key_id, EXAMPLE_KEY.public_key, "active", activated_at=ISSUED_AT, superseded_at=None
        )
        writer.write_member("verification_keys", _encode(ArchiveKeys(keys=[shown])))
        writer.write_member("counts", msgspec.json.encode(writer.counts))
        seal_archive(file, subject, EXAMPLE_KEY, ISSUED_AT)
        file.content.seek(0)
        return file.content.read()
    finally:
        file.close()


def _encode(value: str | Wire) -> bytes:
    return msgspec.json.encode(value) if isinstance(value, str) else value.model_dump_json().encode()


_RECORDS: Final[Mapping[str, Wire]] = {
    "campaigns": CampaignView.from_record(CAMPAIGN),
    "codes": detail_view(CODE, ISSUED_AT),
    "api_keys": archived_api_key(API_KEY, ISSUED_AT),
    "audience_integrations": ArchivedIntegration.from_record(INTEGRATION),
}
PROJECT_ARCHIVE: Final = _write_archive(
    project_subject(PROJECT.id),
    {"organization_id": PROJECT.organization_id, "project": ProjectView.from_record(PROJECT)},
    _RECORDS,
)
ORGANIZATION_ARCHIVE: Final = _write_archive(
    organization_subject(ORGANIZATION.id),
    {"organization": ArchivedOrganization.from_record(ORGANIZATION)},
    {"members": MemberView.from_record(MEMBER), "projects": ProjectView.from_record(PROJECT), **_RECORDS},
)
