"""The key of the audit chain, and the bytes that it seals."""

import asyncio
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.database.rival import Rival
from support.tenancy.audit_entries import ENTROPY, SEALER, TEXTS, open_chain

from soundmark.core.domain.tenancy.audit_chain import (
    CHAIN_BEGINNING,
    ChainKey,
    ChainLink,
    Head,
    SealedContent,
    _canonical,
    hash_entry,
)
from soundmark.core.live.audit_chain import AuditChain
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.sealing import SealBroken, Sealer
from soundmark.kit.postgres.database import Database


async def test_several_first_starts_at_once_agree_on_one_key(db: Database, rival: Rival) -> None:
    chains = await asyncio.gather(*[open_chain(db) for _ in range(8)])
    assert len({chain.key.genesis("org_1") for chain in chains}) == 1
    ((sealed,),) = await rival.rows("SELECT sealed FROM instance_secrets")
    key = SEALER.unseal(sealed, table="instance_secrets", column="sealed", row="audit_chain_key")
    assert ChainKey(key).genesis("org_1") == chains[0].key.genesis("org_1")
    assert key not in sealed


async def test_a_later_start_has_the_same_key(db: Database, chain: AuditChain) -> None:
    assert (await open_chain(db)).key.genesis("org_1") == chain.key.genesis("org_1")


@pytest.mark.usefixtures("chain")
async def test_another_master_key_does_not_open_the_chain(db: Database) -> None:
    """Core does not start with it, because nobody could verify its seals."""
    with pytest.raises(SealBroken):
        await open_chain(db, Sealer(bytes(32), ENTROPY))


async def test_the_database_alone_is_not_enough_to_make_a_seal(chain: AuditChain) -> None:
    """A plain hash could be recomputed by anybody who alters an entry."""
    content = SealedContent(
        "org_1", "aud_1", None, "code.issued", "user", "u", "completed", "{}", "1.000000", "1.000000"
    )
    other = ChainKey(ENTROPY.take(32))
    assert other.seal(bytes(32), 1, content, "final") != chain.key.seal(bytes(32), 1, content, "final")
    assert other.genesis("org_1") != chain.key.genesis("org_1")


def test_a_seal_covers_these_bytes_in_every_release() -> None:
    """If they changed, chains that an earlier release sealed would no longer verify."""
    key = bytes(range(32))
    content = SealedContent(
        "org_1", "aud_1", None, "code.issued", "user", "u", "completed", "{}", "1.000000", "2.500000"
    )
    genesis = hmac.digest(key, b'["soundmark audit chain 1","org_1"]', "sha256")
    begin = b'"org_1","aud_1",null,"code.issued","user","u",'
    requested = genesis + b'["soundmark audit seal 1",1,"requested",' + begin + b'"requested","{}","1.000000",null]'
    final = genesis + b'["soundmark audit seal 1",2,"final",' + begin + b'"completed","{}","1.000000","2.500000"]'
    chain = ChainKey(key)
    assert chain.genesis("org_1") == genesis
    assert chain.seal(genesis, 1, content, "requested") == hmac.digest(key, requested, "sha256")
    assert chain.seal(genesis, 2, content, "final") == hmac.digest(key, final, "sha256")


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ('{"name": "x"}', b'{"name":"x"}'),
        ('{"a": NaN}', rb'{"unreadable":"{\"a\": NaN}"}'),
        ('{"a":' * 31 + "1" + "}" * 31, b'{"a":' * 31 + b"1" + b"}" * 31),
        ('{"a":' * 32 + "1" + "}" * 32, b'{"unreadable":"' + rb"{\"a\":" * 32 + b"1" + b"}" * 32 + b'"}'),
        ("[" * 2**20, b'{"unreadable":"' + b"[" * 2**20 + b'"}'),
    ],
    ids=["plain", "without canonical form", "deep", "too deep", "large"],
)
def test_a_public_hash_covers_the_entry_as_it_is_shown(metadata: str, shown: bytes) -> None:
    """Whatever was altered before the entry got its place, others can compute its hash from the answer of the API."""
    content = SealedContent(
        "org_1", "aud_1", "prj_1", "code.issued", "user", "u", "completed", metadata, "1763632800.123999", "Infinity"
    )
    entry = (
        b'{"action":"code.issued","actor":{"id":"u","type":"user"},"created_at":"2025-11-20T10:00:00.123Z",'
        b'"finalised_at":"Infinity","id":"aud_1","metadata":' + shown + b',"organization_id":"org_1",'
        b'"outcome":"completed","position":8,"project_id":"prj_1"}'
    )
    assert hash_entry(b"\1" * 32, 8, content) == hashlib.sha256(b"\1" * 32 + entry).digest()


def test_only_a_final_entry_is_the_next_of_the_public_chain() -> None:
    content = SealedContent(
        "org_1", "aud_1", None, "code.issued", "user", "u", "completed", "{}", "1.000000", "2.500000"
    )
    head = Head(20, "aud_0", b"s", 0, CHAIN_BEGINNING)
    place = (1, hash_entry(bytes(32), 1, content))
    assert head.next_place(content, "requested") == (None, None)
    assert head.next_place(content, "final") == place
    assert head.after(ChainLink(21, "aud_1", "requested", b"t", None, None)) == Head(21, "aud_1", b"t", 0, bytes(32))
    assert head.after(ChainLink(21, "aud_1", "final", b"t", *place)) == Head(21, "aud_1", b"t", *place)


@given(fields=st.lists(st.one_of(st.none(), TEXTS, st.integers(0, 2**53 - 1))))
def test_the_sealed_bytes_are_canonical_json(fields: list[str | int | None]) -> None:
    """RFC 8785, so that anybody with the key can check a seal with common tools."""
    assert _canonical(fields) == canonicalize(fields)
    assert json.loads(_canonical(fields)) == fields
