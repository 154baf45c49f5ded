"""The seal: Core's signature over a whole archive."""

from datetime import datetime
from typing import Any

from soundmark.core.features.tenancy.exports.archive_file import ArchiveFile
from soundmark.core.features.tenancy.exports.subject import ArchiveSubject
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp


def seal_archive(file: ArchiveFile, subject: ArchiveSubject, key: SigningKey, now: datetime) -> dict[str, Any]:
    """Write the seal and the end of the file; return the seal.

    Source: contract, section 8, "Seal".
    """
    signed = {
        "version": 1,
        "format": subject.format,
        "subject_id": subject.id,
        "exported_at": format_timestamp(now),
        "digest": base64url.encode(file.digest()),
        "key_id": key.key_id,
    }
    payload = canonicalize(signed)
    signature = base64url.encode(key.sign(payload))
    file.write(b',"seal":%b,"signature":"%b"}}\n' % (payload[:-1], signature.encode()))
    return {**signed, "signature": signature}
