"""Writing and signing a deletion certificate."""

import json
from dataclasses import asdict
from datetime import datetime

from soundmark.core.domain.tenancy.closure import Closure
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.deletion_certificate import CERTIFICATE_VERSION, DeletedOrganizationRows, DeletedProjectRows


def write_certificate(
    key: SigningKey,
    closure: Closure,
    deleted: DeletedOrganizationRows,
    remaining: DeletedOrganizationRows,
    *,
    completed_at: datetime,
) -> bytes:
    """Return the JSON text of the signed certificate of a closure, its members in the order of the contract.

    `deleted` and `remaining` are of Core. Audience's remaining counts are zero, or the closure does not get so far.

    Source: contract, section 8.
    """
    of_core = set((DeletedOrganizationRows if closure.project_id is None else DeletedProjectRows).model_fields)
    unsigned = {
        "version": CERTIFICATE_VERSION,
        "certificate_id": closure.certificate_id,
        "subject": {
            "type": closure.subject.type,
            "id": closure.subject.id,
            "organization_id": closure.organization_id,
        },
        "requested_at": format_timestamp(closure.requested_at),
        "completed_at": format_timestamp(completed_at),
        "deleted": {"core": deleted.model_dump(include=of_core), "audience": asdict(closure.purged)},
        "remaining": {
            "core": remaining.model_dump(include=of_core),
            "audience": dict.fromkeys(asdict(closure.purged), 0),
        },
        "key_id": key.key_id,
    }
    signature = base64url.encode(key.sign(canonicalize(unsigned)))
    return json.dumps({**unsigned, "signature": signature}, separators=(",", ":")).encode()
