"""Writing and signing a deletion certificate."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

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
    """Return the canonical JSON of the signed certificate of a closure.

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
    return canonicalize({**unsigned, "signature": signature})


def _core_counts(closure: Closure, counts: TenantCounts) -> dict[str, Any]:
    of_project = {
        "campaigns": counts.campaigns,
        "codes": counts.codes,
        "api_keys": counts.api_keys,
        "webhook_endpoints": 0,  # There are no webhooks yet.
    }
    if closure.project_id is not None:
        return of_project
    return {
        **of_project,
        "projects": counts.projects,
        "members": counts.members,
        "invitations": counts.invitations,
        "audit_entries": counts.audit_entries,
        # There is no support desk and no billing yet.
        "tickets": 0,
        "checkouts": 0,
        "subscriptions": 0,
    }
