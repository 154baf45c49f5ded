"""Recomputing the audit chain of one organisation."""

from dataclasses import dataclass
from typing import Final

from soundmark.core.domain.tenancy.audit_chain import ChainKey, Head, Verification
from soundmark.core.store.tenancy import audit_chain
from soundmark.kit.postgres.transaction import Tx

_LINKS_AT_ONCE: Final = 500


# Before every position that a row could have: what stands before the beginning must not be passed over.
_BEFORE_ALL: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class _Walked:
    """How far the chain holds: its last good link, and the entry where it breaks, if it does.

    `is_absent` where what stood there is gone, and the entry is no more than a guess.
    """

    end: Head
    broken: str | None = None
    is_absent: bool = False


async def verify(tx: Tx, key: ChainKey, organization_id: str) -> Verification:
    """Whether every entry of the organisation, as it stands in this snapshot, is what was sealed or waits for its seal.

    Found are an entry that was altered, deleted, inserted or put elsewhere in the order, a seal that was altered or
    removed, and an end that was cut off. In memory are never more than some hundred entries.

    `first_broken` is the entry at the first place in the chain that does not hold: the one that was altered or is gone.
    Where a seal is gone it is the entry that lost it, if that can be told, or else the entry of the next seal; an entry
    whose id was altered goes by the one that it has now.
    """
    entries, unsealed = await audit_chain.count(tx, organization_id)
    walked = await _walk(tx, key, organization_id)
    head = await audit_chain.find_head(tx, organization_id)
    is_head_right = head == walked.end or (head is None and walked.end.position == 0)
    unaccounted = await audit_chain.find_unaccounted(tx, organization_id)
    first_broken: str | None
    if walked.broken is not None:
        first_broken = unaccounted if walked.is_absent and unaccounted is not None else walked.broken
    elif unaccounted is not None or is_head_right:
        first_broken = unaccounted
    else:
        was_cut = head is not None and head.position > walked.end.position
        first_broken = head.entry_id if head is not None and was_cut else walked.end.entry_id
    is_verified = is_head_right and walked.broken is None and unaccounted is None
    return Verification(is_verified, entries, unsealed, first_broken)


async def _walk(tx: Tx, key: ChainKey, organization_id: str) -> _Walked:
    end, after = Head(0, None, key.genesis(organization_id)), _BEFORE_ALL
    while True:
        links = await audit_chain.list_links(tx, organization_id, after=after, limit=_LINKS_AT_ONCE)
        for link, content in links:
            if link.position <= end.position:
                return _Walked(end, link.entry_id)
            if link.position > end.position + 1:
                displaced = await _find_displaced(tx, key, organization_id, end)
                return _Walked(end, link.entry_id if displaced is None else displaced, is_absent=displaced is None)
            if content is None:
                return _Walked(end, link.entry_id, is_absent=True)
            if key.seal(end.seal, link.position, content, link.stage) != link.seal:
                return _Walked(end, link.entry_id)
            end = Head(link.position, link.entry_id, link.seal)
        if len(links) < _LINKS_AT_ONCE:
            return _Walked(end)
        after = end.position


async def _find_displaced(tx: Tx, key: ChainKey, organization_id: str, end: Head) -> str | None:
    """The entry whose link belongs behind `end` and stands somewhere else."""
    after = _BEFORE_ALL
    while True:
        links = await audit_chain.list_links(tx, organization_id, after=after, limit=_LINKS_AT_ONCE)
        for link, content in links:
            after = link.position
            if content is not None and key.seal(end.seal, end.position + 1, content, link.stage) == link.seal:
                return link.entry_id
        if len(links) < _LINKS_AT_ONCE:
            return None
