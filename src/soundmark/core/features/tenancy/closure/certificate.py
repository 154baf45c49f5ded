"""Writing and signing a deletion certificate."""

import json
from dataclasses import asdict
from datetime import datetime

from soundmark.core.domain.tenancy.closure import Closure
from soundmark.core.store.tenancy.deletions import TenantCounts
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.deletion_certificate import CERTIFICATE_VERSION


def write_certificate(
    key: SigningKey, closure: Closure, deleted: TenantCounts, remaining: TenantCounts, *, completed_at: datetime
) -> bytes:
    """Return the JSON text of the signed certificate of a closure, its members in the order of the contract.

    `deleted` and `remaining` are of Core. Audience's remaining counts are zero, or the closure does not get so far.

    Source: contract, section 8.
    """
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
        "deleted": {"core": _core_counts(closure, deleted), "audience": asdict(closure.purged)},
        "remaining": {"core": _core_counts(closure, remaining), "audience": dict.fromkeys(asdict(closure.purged), 0)},
        "key_id": key.key_id,
    }
    signature = base64url.encode(key.sign(canonicalize(unsigned)))
    return json.dumps({**unsigned, "signature": signature}, separators=(",", ":")).encode()


def _core_counts(closure: Closure, counts: TenantCounts) -> dict[str, int]:
    of_project = {"campaigns": counts.campaigns, "codes": counts.codes, "api_keys": counts.api_keys}
    endpoints = {"webhook_endpoints": counts.webhook_endpoints}
    if closure.project_id is not None:
        return {**of_project, **endpoints}
    of_organization = {
        "members": counts.members,
        "invitations": counts.invitations,
        "audit_entries": counts.audit_entries,
    }
    of_support_and_billing = {
        "tickets": counts.tickets,
        "checkouts": counts.checkouts,
        "subscriptions": counts.subscriptions,
    }
    return {"projects": counts.projects, **of_project, **of_organization, **of_support_and_billing, **endpoints}
