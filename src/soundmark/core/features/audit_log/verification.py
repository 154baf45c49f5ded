"""Recomputing the audit chain of one organisation."""

from dataclasses import dataclass
from typing import Final

from soundmark.core.domain.audit_chain import ChainKey, Head, Verification
from soundmark.core.store import audit_chain
from soundmark.kit.postgres import Tx

_LINKS_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class _Walked:
    """How far the chain holds: its last good link, and where it breaks, if it does."""

    end: Head
    broken: str | None = None
    is_gap: bool = False


async def verify(tx: Tx, key: ChainKey, organization_id: str) -> Verification:
    """Whether every entry of the organisation, as it stands in this snapshot, is what was sealed or waits for its seal.

    Found are an entry that was altered, deleted, inserted or put elsewhere in the order, a seal that was altered or
    removed, and an end that was cut off. In memory are never more than some hundred entries.

    `first_broken` is the entry at the first place in the chain that does not hold: the one that was altered or is gone.
    Where a seal is gone it is the entry that lost it, if that can be told, or else the entry of the next seal.
    """
    entries, unsealed = await audit_chain.count(tx, organization_id)
    walked = await _walk(tx, key, organization_id)
    unaccounted = None
    if walked.broken is None or walked.is_gap:
        unaccounted = await audit_chain.find_unaccounted(tx, organization_id)
    head = await audit_chain.find_head(tx, organization_id)
    head_holds = head == walked.end or (head is None and walked.end.position == 0)
    first_broken = unaccounted or walked.broken
    if first_broken is None and not head_holds:
        first_broken = walked.end.entry_id if head is None or head.position <= walked.end.position else head.entry_id
    is_verified = head_holds and walked.broken is None and unaccounted is None
    return Verification(is_verified, entries, unsealed, first_broken)


async def _walk(tx: Tx, key: ChainKey, organization_id: str) -> _Walked:
    end = Head(0, None, key.genesis(organization_id))
    while True:
        links = await audit_chain.list_links(tx, organization_id, after=end.position, limit=_LINKS_AT_ONCE)
        for link, content in links:
            if link.position != end.position + 1:
                return _Walked(end, link.entry_id, is_gap=True)
            if content is None or key.seal(end.seal, link.position, content, link.stage) != link.seal:
                return _Walked(end, link.entry_id)
            end = Head(link.position, link.entry_id, link.seal)
        if len(links) < _LINKS_AT_ONCE:
            return _Walked(end)
