"""What an organisation checks in the log: each of its Codes is there, and no revocation that it did not order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from soundmark_sdk.client import Client
from soundmark_sdk.client.records import ListedCode

from soundmark.core.domain.log.auditing import LogFault
from soundmark.core.domain.log.entry import LogEntry, digest
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.text import base64url

# Longer than anything takes from its answer to a published checkpoint, with the slowest witnesses.
LOGGED_AFTER: Final = timedelta(seconds=30)


@dataclass(slots=True)
class LoggedCodes:
    """The commitments to whole Codes that a log has."""

    issued: set[bytes] = field(default_factory=set)
    revoked: set[bytes] = field(default_factory=set)

    def add(self, entries: list[LogEntry]) -> None:
        """Note what is about Codes."""
        for entry in entries:
            if entry.kind == "code.issued":
                self.issued.add(entry.digests[0])
            elif entry.kind == "code.revoked":
                self.revoked.add(entry.digests[0])


@dataclass(frozen=True, slots=True)
class OwnCode:
    """A Code of the organisation, as the service lists it now, and its two commitments."""

    listed: ListedCode
    issued: bytes
    revoked: bytes


def read_codes(client: Client, known: Mapping[str, list[str]]) -> list[OwnCode]:
    """Return every Code of the organisation; those that an earlier run knew are not read again."""
    found = []
    for listed in client.codes.list():
        if listed.xr_id in known:
            issued, revoked = map(base64url.decode, known[listed.xr_id])
        else:
            signed = canonicalize(dict(client.codes.show(listed.xr_id).signed_code))
            issued, revoked = (digest(kind, "code", signed) for kind in ("code.issued", "code.revoked"))
        found.append(OwnCode(listed, issued, revoked))
    return found


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
        if ordered is not None and listed.xr_id not in ordered:
            raise LogFault(f"the Code {listed.xr_id} was revoked, and you did not order it")
        revoked.append(listed.xr_id)
    return revoked


def describe_codes(codes: list[OwnCode]) -> dict[str, Any]:
    """Return what the next run needs, for the state file."""
    return {code.listed.xr_id: [base64url.encode(code.issued), base64url.encode(code.revoked)] for code in codes}
