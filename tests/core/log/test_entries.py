"""Entries: canonical, closed, and committing to what the contract names."""

import hashlib
import json

import pytest

from soundmark.core.domain.log import entry as entries
from soundmark.core.domain.log.entry import NotAnEntry, read_entry
from soundmark.core.edge.examples import CODE
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.text import base64url

SIGNED_CODE = {**json.loads(CODE.payload), "signature": base64url.encode(CODE.signature)}


def commitment(path: str, value: object) -> str:
    """Return `D(path; value)` as the contract defines it, by other means than the code under test."""
    tagged = b"soundmark/log/v1/" + path.encode() + b"\0" + canonicalize(value)
    return base64url.encode(hashlib.sha256(tagged).digest())


def test_an_issued_code_has_a_commitment_for_its_owner_and_one_for_its_receiver() -> None:
    entry = entries.issued_entry(entries.commit_issued([CODE]))
    answer = {name: SIGNED_CODE[name] for name in ("xr_id", "token_digest", "intent", "policy")}
    assert entry == canonicalize(
        {
            "v": 1,
            "kind": "code.issued",
            "code": commitment("code.issued/code", SIGNED_CODE),
            "answer": commitment("code.issued/answer", answer),
        }
    )
    assert [base64url.encode(digest) for digest in read_entry(entry).digests] == [
        commitment("code.issued/code", SIGNED_CODE),
        commitment("code.issued/answer", answer),
    ]


def test_every_other_kind_commits_to_what_the_contract_names() -> None:
    public_key = bytes(range(32))
    key = {"kid": "sig_example", "x": base64url.encode(public_key)}
    head = {"organization_id": "org_example", "entries": 7, "chain_hash": "A" * 43}
    document = {"version": 1, "signature": "é"}
    expected = {
        "code.revoked": (
            entries.revoked_entry(entries.commit_revoked(CODE.payload, CODE.signature)),
            {"code": commitment("code.revoked/code", SIGNED_CODE)},
        ),
        "key.retired": (
            entries.key_entry("key.retired", "sig_example", public_key),
            {"key": commitment("key.retired/key", key), **key},
        ),
        "audit.head": (
            entries.audit_head_entry("org_example", 7, "A" * 43),
            {"head": commitment("audit.head/head", head)},
        ),
        "document.sealed": (
            entries.document_entry(canonicalize(document)),
            {"document": commitment("document.sealed/document", document)},
        ),
    }
    for kind, (entry, members) in expected.items():
        assert entry == canonicalize({"v": 1, "kind": kind, **members})
        assert read_entry(entry).kind == kind


def key_entry_of(size: int) -> bytes:
    """Return the entry of a key whose id makes it this long."""
    spare = size - len(entries.key_entry("key.retired", "", bytes(32)))
    return entries.key_entry("key.retired", "s" * spare, bytes(32))


def test_only_closed_canonical_entries_are_read(subtests: pytest.Subtests) -> None:
    good = json.loads(entries.document_entry(b"{}"))
    key = json.loads(entries.key_entry("key.retired", "sig_example", bytes(32)))
    wrong = {
        "another member": canonicalize({**good, "note": 1}),
        "no digest": canonicalize({"v": 1, "kind": "document.sealed"}),
        "short digest": canonicalize({**good, "document": "AAAA"}),
        "padded digest": canonicalize({**good, "document": good["document"] + "="}),
        "number": canonicalize({**good, "document": 1}),
        "kind": canonicalize({**good, "kind": "document.opened"}),
        "kind of another type": canonicalize({**good, "kind": 1}),
        "version": canonicalize({**good, "v": 2}),
        "order": json.dumps(dict(reversed(good.items())), separators=(",", ":")).encode(),
        "space": json.dumps(good, sort_keys=True).encode(),
        "list": b"[]",
        "not JSON": b"{",
        "not UTF-8": b"\xff",
        "key of another": canonicalize({**key, "kid": "sig_other"}),
        "too long": key_entry_of(513),
    }
    assert read_entry(canonicalize(good)).kind == "document.sealed"
    assert read_entry(key_entry_of(512)).kind == "key.retired"
    for name, data in wrong.items():
        with subtests.test(name), pytest.raises(NotAnEntry):
            read_entry(data)
