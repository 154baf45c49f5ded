"""Verification of the audit chain of one organisation."""

from dataclasses import dataclass
from typing import Final

from soundmark.core.domain.tenancy.audit_chain import CHAIN_BEGINNING, ChainKey, Head, Verification
from soundmark.core.store.tenancy import audit_chain
from soundmark.kit.postgres.transaction import Tx

_LINKS_AT_ONCE: Final = 500


# Lower than every possible position: links inserted before the beginning must not be skipped.
_BEFORE_ALL: Final = -(2**63)


@dataclass(frozen=True, slots=True)
class _IntactPart:
    """How far the chain is intact: its last good link, and the entry where it breaks, if it does.

    `is_absent` means that the entry at the break is missing, so that `broken` is only a guess.
    """

    end: Head
    broken: str | None = None
    is_absent: bool = False


async def verify(tx: Tx, key: ChainKey, organization_id: str) -> Verification:
    """Verify that every entry of the organisation in this snapshot is as it was sealed, or is not yet sealed.

    This detects entries that were altered, deleted, inserted or reordered, seals that were altered or removed, and a
    chain that was cut off at its end. Memory never holds more than a few hundred entries.

    `first_broken` is the entry at the first break in the chain: the one that was altered or deleted. If a seal is
    missing, it is the entry that lost its seal if that can be determined, or else the entry of the next seal. An entry
    whose id was altered is reported under its present id.
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


async def _walk(tx: Tx, key: ChainKey, organization_id: str) -> _IntactPart:
    end, after = Head(0, None, key.genesis(organization_id), 0, CHAIN_BEGINNING), _BEFORE_ALL
    while True:
        links = await audit_chain.list_links(tx, organization_id, after=after, limit=_LINKS_AT_ONCE)
        for link, content in links:
            if link.position <= end.position:
                return _IntactPart(end, link.entry_id)
            if link.position > end.position + 1:
                displaced = await _find_displaced(tx, key, organization_id, end)
                return _IntactPart(end, link.entry_id if displaced is None else displaced, is_absent=displaced is None)
            if content is None:
                return _IntactPart(end, link.entry_id, is_absent=True)
            if key.seal(end.seal, link.position, content, link.stage) != link.seal:
                return _IntactPart(end, link.entry_id)
            if end.next_place(content, link.stage) != (link.chain_position, link.chain_hash):
                return _IntactPart(end, link.entry_id)
            end = end.after(link)
        if len(links) < _LINKS_AT_ONCE:
            return _IntactPart(end)
        after = end.position


async def _find_displaced(tx: Tx, key: ChainKey, organization_id: str, end: Head) -> str | None:
    """Return the entry whose link belongs after `end` but is elsewhere; None if there is none."""
    after = _BEFORE_ALL
    while True:
        links = await audit_chain.list_links(tx, organization_id, after=after, limit=_LINKS_AT_ONCE)
        for link, content in links:
            after = link.position
            if content is not None and key.seal(end.seal, end.position + 1, content, link.stage) == link.seal:
                return link.entry_id
        if len(links) < _LINKS_AT_ONCE:
            return None
