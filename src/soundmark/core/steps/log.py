"""Entering facts into the transparency log, in the transaction of what they state.

Codes are entered by `store.codes`: by the statement that inserts or revokes them.
"""

from collections.abc import Sequence

from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.core.domain.log.entry import KeyEvent, audit_head_entry, document_entry, key_entry
from soundmark.core.store.log import queue
from soundmark.kit.postgres.transaction import AnyTx


async def log_document(tx: AnyTx, canonical: bytes) -> None:
    """Enter a signed document, given as its RFC 8785 bytes with the signature.

    Source: contract, section 11, `document.sealed`.
    """
    await queue.insert(tx, [document_entry(canonical)])


async def log_audit_head(tx: AnyTx, organization_id: str, *, entries: int, chain_hash: str) -> None:
    """Enter the head of an organisation's audit chain: the `chain_hash` of the entry at position `entries`.

    Source: contract, section 11, `audit.head`.
    """
    await queue.insert(tx, [audit_head_entry(organization_id, entries, chain_hash)])


async def log_key(tx: AnyTx, record: SigningKeyRecord, events: Sequence[KeyEvent]) -> None:
    """Enter what happened to a signing key.

    Source: contract, section 11, `key.…`.
    """
    await queue.insert(tx, [key_entry(event, record.key_id, record.public_key) for event in events])
