"""What an organisation checks in the log: each of its Codes is there, and no revocation that it did not order."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from soundmark_sdk import CertificateRejected, KeySet, VerifiedCertificate, verify_certificate
from soundmark_sdk.certificate import CERTIFICATE_BYTES_MAX
from soundmark_sdk.client import Client
from soundmark_sdk.client.records import ListedCode

from soundmark.cli import Refused
from soundmark.cli.verification_keys import fetch_keys, read_bounded
from soundmark.core.domain.log.auditing import LogFault
from soundmark.core.domain.log.entry import LogEntry, digest
from soundmark.kit.crypto.canonical import DEPTH_MAX, SIZE_MAX_BYTES, canonicalize
from soundmark.kit.text import base64url

# Longer than anything takes from its answer to a published checkpoint, with the slowest witnesses.
LOGGED_AFTER: Final = timedelta(seconds=30)
# What the state file keeps of each Code, by its id: see `describe_codes`.
KnownCodes = Mapping[str, Sequence[str]]


@dataclass(slots=True)
class LoggedCodes:
    """The commitments to whole Codes, and to documents, that a log has."""

    issued: set[bytes] = field(default_factory=set)
    revoked: set[bytes] = field(default_factory=set)
    documents: set[bytes] = field(default_factory=set)

    def add(self, entries: list[LogEntry]) -> None:
        """Note what is about Codes, and what may be about their deletion."""
        sets = {"code.issued": self.issued, "code.revoked": self.revoked, "document.sealed": self.documents}
        for entry in entries:
            if entry.kind in sets:
                sets[entry.kind].add(entry.digests[0])


@dataclass(frozen=True, slots=True)
class OwnCode:
    """A Code of the organisation, as the service lists it now, and its two commitments."""

    listed: ListedCode
    issued: bytes
    revoked: bytes


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion certificate that the organisation has, verified, and the commitment to it."""

    certificate: VerifiedCertificate
    document: bytes


def read_codes(client: Client, known: KnownCodes) -> list[OwnCode]:
    """Return every Code of the organisation; those that an earlier run knew are not read again."""
    found = []
    for listed in client.codes.list():
        if listed.xr_id in known:
            issued, revoked = map(base64url.decode, known[listed.xr_id][:2])
        else:
            # One level above the intent, and everything else that is signed beside it.
            limits = {"depth_max": DEPTH_MAX + 1, "size_max_bytes": 2 * SIZE_MAX_BYTES}
            signed = canonicalize(dict(client.codes.show(listed.xr_id).signed_code), **limits)
            issued, revoked = (digest(kind, "code", signed) for kind in ("code.issued", "code.revoked"))
        found.append(OwnCode(listed, issued, revoked))
    return found


def read_deletions(files: Sequence[Path], base_url: str) -> list[Deletion]:
    """Return the deletion certificates in files.

    Raises: Refused unless keys of the service at this URL signed all of them.
    """
    if not files:
        return []
    keys = fetch_keys(base_url)
    return [_read_deletion(file, keys) for file in files]


def _read_deletion(file: Path, keys: KeySet) -> Deletion:
    """Raises: Refused."""
    text = read_bounded(file, CERTIFICATE_BYTES_MAX)
    try:
        verified = verify_certificate(text, keys)
    except CertificateRejected as rejected:
        raise Refused(f"{file} is not genuine: {rejected}") from None
    return Deletion(verified, digest("document.sealed", "document", canonicalize(json.loads(text))))


def judge_codes(
    codes: list[OwnCode],
    logged: LoggedCodes,
    *,
    at: datetime,
    ordered: frozenset[str] | None,
    since: datetime | None,
) -> list[str]:
    """Compare the Codes, as they were listed at a time, with the log; return the ids of those that the log revokes.

    `ordered` are the Codes that the organisation had revoked; None if it keeps no record. What was issued before
    `since` and has ended needs no entry.

    Raises: LogFault for the first Code with which something is wrong.
    """
    revoked = []
    for code in codes:
        listed = code.listed
        is_exempt = since is not None and listed.issued_at < since and listed.status != "active"
        if code.issued not in logged.issued and listed.issued_at < at - LOGGED_AFTER and not is_exempt:
            raise LogFault(f"the Code {listed.xr_id} was issued, and is not in the log")
        if code.revoked not in logged.revoked:
            if listed.revoked_at is not None and listed.revoked_at < at - LOGGED_AFTER and not is_exempt:
                raise LogFault(f"the Code {listed.xr_id} is revoked, and the log does not say so")
            continue
        if listed.revoked_at is None and ordered is None:
            raise LogFault(f"the log revokes the Code {listed.xr_id}, and the service does not say so")
        _require_ordered(listed.xr_id, ordered)
        revoked.append(listed.xr_id)
    return revoked


def judge_unlisted(
    known: KnownCodes,
    codes: list[OwnCode],
    logged: LoggedCodes,
    deletions: Sequence[Deletion],
    *,
    ordered: frozenset[str] | None,
) -> dict[str, list[str]]:
    """Return the Codes that are no longer listed, by the id of the certificate of their deletion, which is in the log.

    Raises: LogFault for a certificate that is not in the log, a Code without one, and a revocation as `judge_codes`.
    """
    subjects = dict[str, str]()
    for deletion in deletions:
        certificate = deletion.certificate
        if deletion.document not in logged.documents:
            raise LogFault(f"the certificate {certificate.certificate_id} is not in the log")
        subjects[certificate.subject_id] = certificate.certificate_id
    explained = dict[str, list[str]]()
    for xr_id in sorted(set(known) - {code.listed.xr_id for code in codes}):
        _, revoked, *owners = known[xr_id]
        certificate_id = next((subjects[owner] for owner in owners if owner in subjects), None)
        if certificate_id is None:
            raise LogFault(
                f"the Code {xr_id} was listed before, and no longer is;"
                " if you had it deleted, give the deletion certificate with --certificate"
            )
        if base64url.decode(revoked) in logged.revoked:
            _require_ordered(xr_id, ordered)
        explained.setdefault(certificate_id, []).append(xr_id)
    return explained


def describe_codes(codes: list[OwnCode]) -> KnownCodes:
    """Return what the next run needs, for the state file: the two commitments, the organisation and the project."""
    return {
        code.listed.xr_id: [
            base64url.encode(code.issued),
            base64url.encode(code.revoked),
            code.listed.organization_id,
            code.listed.project_id,
        ]
        for code in codes
    }


def _require_ordered(xr_id: str, ordered: frozenset[str] | None) -> None:
    """Raises: LogFault."""
    if ordered is not None and xr_id not in ordered:
        raise LogFault(f"the Code {xr_id} was revoked, and you did not order it")
