"""Choosing what goes into an offline pack, writing it and signing it."""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from soundmark.core.domain.codes.code import Code
from soundmark.core.domain.codes.offline_pack import PackRecord
from soundmark.core.domain.codes.signed_facts import SignedFacts, agree, read_facts
from soundmark.core.integrity import report_broken
from soundmark.core.problems import OfflinePackTooLarge
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import PublicKey, SigningKey, verifies
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.offline_pack import PACK_BYTES_MAX, PACK_FORMAT, PACK_VERSION

_CANONICAL_CODE: Final = b'{"expires_at":"%b","intent":%b,"token_digest":"%b","xr_id":"%b"}'
_WRITTEN_CODE: Final = b'{"xr_id":"%b","token_digest":"%b","intent":%b,"expires_at":"%b"}'


def read_genuine(codes: Iterable[Code], keys: Mapping[str, PublicKey]) -> list[SignedFacts]:
    """Return the facts of the Codes that verify. Others raise an alarm and are left out, as resolution does."""
    genuine = []
    for code in codes:
        facts = read_facts(code.payload)
        key = None if facts is None else keys.get(facts.key_id)
        if (
            facts is not None
            and key is not None
            and agree(facts, code)
            and verifies(key.public_key, code.payload, code.signature)
        ):
            genuine.append(facts)
        else:
            report_broken("tenant", xr_id=code.xr_id)
    return genuine


def write_pack(key: SigningKey, record: PackRecord, codes: Iterable[SignedFacts]) -> tuple[bytes, bytes]:
    """Return a signed pack: its JSON text, in the order of the contract, and its canonical form.

    Raises: OfflinePackTooLarge for more than `PACK_BYTES_MAX` bytes.
    Source: contract, section 12; details, points A22 and A35.
    """
    ordered = sorted(codes, key=lambda facts: facts.xr_id)
    times = {"issued_at": format_timestamp(record.issued_at), "valid_until": format_timestamp(record.valid_until)}
    before = canonicalize({"campaign_id": record.campaign_id})
    after = {
        "format": PACK_FORMAT,
        "issued_at": times["issued_at"],
        "key_id": key.key_id,
        "pack_id": record.id,
        "project_id": record.project_id,
        "valid_until": times["valid_until"],
        "version": PACK_VERSION,
    }
    listed = b",".join(
        _CANONICAL_CODE
        % (facts.expires_at.encode(), bytes(facts.intent), facts.token_digest.encode(), facts.xr_id.encode())
        for facts in ordered
    )
    signature = base64url.encode(key.sign(_splice(before, listed, canonicalize(after))))
    canonical = _splice(before, listed, canonicalize({**after, "signature": signature}))
    if len(canonical) > PACK_BYTES_MAX:
        raise OfflinePackTooLarge
    head = {
        "version": PACK_VERSION,
        "format": PACK_FORMAT,
        "pack_id": record.id,
        "project_id": record.project_id,
        "campaign_id": record.campaign_id,
        **times,
    }
    written = b",".join(
        _WRITTEN_CODE
        % (facts.xr_id.encode(), facts.token_digest.encode(), bytes(facts.intent), facts.expires_at.encode())
        for facts in ordered
    )
    return _splice(_write(head), written, _write({"key_id": key.key_id, "signature": signature})), canonical


def _splice(before: bytes, codes: bytes, after: bytes) -> bytes:
    """Return one object with the members of `before`, the member `codes`, and the members of `after`."""
    return before[:-1] + b',"codes":[' + codes + b"]," + after[1:]


def _write(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
