"""Verify a downloaded audit log: the chain of hashes over its entries, and the log that holds the chain's heads."""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from soundmark_sdk import base64url, strict_json, timestamps
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.transparency.commitments import DIGEST_BYTES, commit
from soundmark_sdk.transparency.policy import LogPolicy
from soundmark_sdk.transparency.proof import VerifiedProof, verify_log_proof

_LINE_BYTES_MAX: Final = 1024 * 1024
# An organisation that writes four entries a second, all the time, has a head among so many.
_NEWEST_ASKED: Final = 256
_PAUSES_ASKED: Final = 32
# Heads are taken as a minute begins. Sealing may be a moment behind, so these are only worth being asked first.
_MINUTES_ASKED: Final = 64
# An organisation that writes fifty entries a second, all the time, has a head among so many.
_ASKED_MAX: Final = 10_000
_MINUTE_MS: Final = 60_000
# An entry is chained ten seconds after it is final, and its head is in the log two minutes later (contract, section 11,
# and its details, points A2 and A3): the last entry before a longer pause has a head of its own.
_PAUSE_MS: Final = 140_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BEGINNING: Final = bytes(DIGEST_BYTES)  # The hash before the first.


class AuditLogRejected(Exception):
    """The first entry, by its position, that is altered, missing or moved.

    `entry_id` names it, unless it is missing; `position` is its place in the chain, if it has one. `explanation` is an
    English sentence of this package.
    """

    def __init__(self, explanation: str, *, position: int | None = None, entry_id: str | None = None) -> None:
        super().__init__(explanation)
        self.explanation: Final = explanation
        self.position: Final = position
        self.entry_id: Final = entry_id


@dataclass(frozen=True, slots=True)
class VerifiedAuditLog:
    """A download whose chain is whole: the entries from the first one on, each as it was chained.

    `unchained` entries are too new to have a place, or have no outcome yet; nothing proves them. `covered` of the
    `entries` stand below a head that the transparency log holds; None if the log was not asked. Newer entries could
    have been cut off: the log says only what was there when it took the head.
    """

    organization_id: str | None
    entries: int
    unchained: int
    covered: int | None = None
    proof: VerifiedProof | None = None


def verify_audit_log(
    lines: Iterable[bytes],
    *,
    policy: LogPolicy | None = None,
    fetch_proof: Callable[[str], bytes | None] | None = None,
    logged_entries: int | None = None,
) -> VerifiedAuditLog:
    """Verify an audit log as `GET /v1/audit-log` gives it, unfiltered, for `Accept: application/x-ndjson`.

    `lines` are its lines in any order. Memory: some 150 bytes for each entry. With a `policy`, `fetch_proof` is asked
    for the answer of `GET /v1/log/proofs/{digest}` (None for a 404) of one head after the other, until the log holds
    one: that of `logged_entries` first, then those of the newest 256 entries, of the last entry before each of the
    newest 32 pauses of the organisation and each of the newest 64 minutes, and then of every entry from the newest
    down: 10,000 at most. `logged_entries` is the `entries` of the `logged_head` that `GET /v1/audit-log/verification`
    names; it says where to look, and is not believed.

    Raises: AuditLogRejected. Unverifiable for a proof that is wrong.
    Source: wire contract, section 11, "Audit chain".
    """
    chain = _Chain()
    for number, line in enumerate(lines, 1):
        chain.add(_read_entry(line, number))
    chain.check()
    found = VerifiedAuditLog(chain.organization_id, len(chain.hashes), chain.unchained)
    if policy is None or fetch_proof is None:
        return found
    for position in _choose_heads(chain, logged_entries):
        head = {
            "organization_id": chain.organization_id,
            "entries": position,
            "chain_hash": base64url.encode(chain.hashes[position]),
        }
        digest = commit("audit.head/head", head)
        proof = fetch_proof(digest)
        if proof is not None:
            return replace(found, covered=position, proof=verify_log_proof(proof, policy, "audit.head/head", digest))
    return replace(found, covered=0)


def _choose_heads(chain: "_Chain", logged_entries: int | None) -> Iterator[int]:
    """Yield the positions whose heads the log may hold, each once: at most `_ASKED_MAX`, however long the chain is."""
    asked = set[int]()
    for position in _list_likely(chain, logged_entries):
        if position not in asked:
            yield position
            asked.add(position)
            if len(asked) == _ASKED_MAX:
                return


def _list_likely(chain: "_Chain", logged_entries: int | None) -> Iterator[int]:
    """Yield the likeliest first, and some several times."""
    last = len(chain.hashes)
    if logged_entries is not None and 1 <= logged_entries <= last:
        yield logged_entries
    oldest = max(last - _NEWEST_ASKED, 0)
    yield from range(last, oldest, -1)
    yield from itertools.islice(filter(chain.has_pause_after, range(oldest, 0, -1)), _PAUSES_ASKED)
    yield from itertools.islice(filter(chain.ends_minute, range(oldest, 0, -1)), _MINUTES_ASKED)
    yield from range(oldest, 0, -1)


class _Chain:
    """The entries that were read. The content of one is kept until that of the position before it is there."""

    def __init__(self) -> None:
        self.organization_id: str | None = None
        self.unchained = 0
        self.hashes: Final[dict[int, bytes]] = {0: _BEGINNING}  # What each position claims to be the hash.
        self._final_ms: Final[dict[int, int]] = {}
        self._waiting: Final[dict[int, tuple[str, bytes]]] = {}
        self._broken: Final[dict[int, str]] = {}

    def add(self, entry: Mapping[str, Any]) -> None:
        """Take one entry.

        Raises: AuditLogRejected for an entry of another organisation, or one that has the position of another.
        """
        entry_id, position = entry["id"], entry["position"]
        if self.organization_id not in (None, entry["organization_id"]):
            raise AuditLogRejected("An entry is that of another organisation.", entry_id=entry_id)
        self.organization_id = entry["organization_id"]
        if position is None:
            self.unchained += 1
            return
        if position in self.hashes:
            raise AuditLogRejected(f"Two entries have the position {position}.", position=position, entry_id=entry_id)
        self.hashes[position] = base64url.decode(entry["chain_hash"])
        self._final_ms[position] = _read_final_ms(entry)
        content = strict_json.canonicalize({name: value for name, value in entry.items() if name != "chain_hash"})
        self._waiting[position] = entry_id, content
        for each in (position, position + 1):
            if each in self._waiting and each - 1 in self.hashes:
                self._compare(each)

    def check(self) -> None:
        """Raises: AuditLogRejected if a position is missing, or if the hash of an entry is another one."""
        del self.hashes[0]
        missing = next((each for each in range(1, max(self.hashes, default=0)) if each not in self.hashes), None)
        first = min(self._broken, default=None)
        if first is not None and (missing is None or first < missing):
            explanation = f"The entry at position {first} is not what was chained there."
            raise AuditLogRejected(explanation, position=first, entry_id=self._broken[first])
        if missing is not None:
            last = min(each for each in self.hashes if each > missing) - 1
            which = f"position {missing} is" if last == missing else f"positions {missing} to {last} are"
            raise AuditLogRejected(f"The {which} missing.", position=missing)

    def has_pause_after(self, position: int) -> bool:
        """Return whether the next entry became final so much later that the head at this one is in the log."""
        return self._final_ms[position + 1] - self._final_ms[position] >= _PAUSE_MS

    def ends_minute(self, position: int) -> bool:
        """Return whether the next entry became final in a later minute."""
        return self._final_ms[position + 1] // _MINUTE_MS > self._final_ms[position] // _MINUTE_MS

    def _compare(self, position: int) -> None:
        entry_id, content = self._waiting.pop(position)
        if hashlib.sha256(self.hashes[position - 1] + content).digest() != self.hashes[position]:
            self._broken[position] = entry_id


def _read_final_ms(entry: Mapping[str, Any]) -> int:
    """Return when an entry became final, in milliseconds; 0 for what is no time, which its hash then has to judge."""
    try:
        final_at = timestamps.parse(entry.get("finalised_at") or entry.get("created_at"))
    except Unverifiable:
        return 0
    return (final_at - _EPOCH) // timedelta(milliseconds=1)


def _read_entry(line: bytes, number: int) -> Mapping[str, Any]:
    """Return a line's entry, of which nothing is trusted but the types of the members that are used.

    Raises: AuditLogRejected.
    """
    try:
        entry = strict_json.parse(line) if len(line) <= _LINE_BYTES_MAX else None
        if isinstance(entry, dict) and isinstance(entry["id"], str) and isinstance(entry["organization_id"], str):
            position, chain_hash = entry["position"], entry["chain_hash"]
            if position is None and chain_hash is None:
                return entry
            is_place = isinstance(position, int) and not isinstance(position, bool) and position >= 1
            if is_place and isinstance(chain_hash, str) and len(base64url.decode(chain_hash)) == DIGEST_BYTES:
                return entry
    except (Unverifiable, KeyError, ValueError):
        pass
    raise AuditLogRejected(f"Line {number} is not an entry of an audit log.")
