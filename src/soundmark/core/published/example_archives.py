"""Examples of archives: written and sealed by the code that writes the real ones."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from soundmark.core.features.tenancy.exports.archive_file import ArchiveFile, ArchiveWriter
from soundmark.core.features.tenancy.exports.sealing import seal_archive
from soundmark.core.features.tenancy.exports.subject import ArchiveSubject
from soundmark.core.features.tenancy.exports.wire import ArchiveKeys
from soundmark.core.views.signing_keys import historic_key
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.shape import Wire

_BYTES_MAX: Final = 64 * 1024


def example_archive(
    subject: ArchiveSubject,
    members: Mapping[str, str | Wire],
    records: Mapping[str, Wire],
    *,
    key: SigningKey,
    now: datetime,
) -> Any:
    """Return an archive with these members before its lists, and with one record in each list, sealed at `now`."""
    file = ArchiveFile(_BYTES_MAX, subject.too_large)
    try:
        writer = ArchiveWriter(file)
        writer.begin(msgspec.json.encode({"format": subject.format, "exported_at": format_timestamp(now)}))
        for name, value in members.items():
            writer.write_member(name, _encode(value))
        for name, record in records.items():
            writer.open_list(name)
            writer.add(name, [_encode(record)])
            writer.close_list(name)
        shown = historic_key(key.key_id, key.public_key, "active", activated_at=now, superseded_at=None)
        writer.write_member("verification_keys", _encode(ArchiveKeys(keys=[shown])))
        writer.write_member("counts", msgspec.json.encode(writer.counts))
        seal_archive(file, subject, key, now)
        file.content.seek(0)
        return json.load(file.content)
    finally:
        file.close()


def _encode(value: str | Wire) -> bytes:
    return msgspec.json.encode(value) if isinstance(value, str) else value.model_dump_json().encode()
