"""The key of the audit chain, and the bytes that it seals."""

import asyncio
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.database.rival import Rival
from support.tenancy.audit_entries import ENTROPY, SEALER, TEXTS, open_chain

from soundmark.core.domain.tenancy.audit_chain import ChainKey, SealedContent, _canonical
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


@given(fields=st.lists(st.one_of(st.none(), TEXTS, st.integers(0, 2**53 - 1))))
def test_the_sealed_bytes_are_canonical_json(fields: list[str | int | None]) -> None:
    """RFC 8785, so that anybody with the key can check a seal with common tools."""
    assert _canonical(fields) == canonicalize(fields)
    assert json.loads(_canonical(fields)) == fields
