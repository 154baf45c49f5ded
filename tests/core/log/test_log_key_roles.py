"""The log's key signs checkpoints and nothing else; no other signature of it counts, and no other key signs one."""

import importlib.resources
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import pytest
from soundmark_sdk import CertificateRejected, LogPolicy, read_key_history, verify_certificate
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.transparency.proof import verify_log_proof
from support.api.core_client import Api
from support.log.independent import tlog
from support.log.independent import witness as aics
from support.log.stored_log import StoredLog
from support.log.witnesses import TheirWitness
from support.tenancy.archives import export_organization
from support.tenancy.closures import fill, organization_of, project_of
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.log.checkpoint import (
    Checkpoint,
    cosign,
    is_cosigned,
    sign_checkpoint,
    verify_checkpoint,
    write_proof,
)
from soundmark.core.domain.log.entry import digest, document_entry
from soundmark.core.domain.log.tree import hash_leaf
from soundmark.core.features.log.integration.keys import read_signers
from soundmark.core.live.keyring import read_signing_key
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.sealing import SealBroken
from soundmark.kit.crypto.signed_notes import (
    COSIGNATURE,
    NotANote,
    Note,
    NoteSignature,
    VerifierKey,
    parse_verifier_key,
)
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url

from .conftest import Integrators

# Where no key of Core signs: a witness cosigns with its own.
WITNESS: Final = "soundmark.core.domain.log.checkpoint"


@dataclass(frozen=True)
class Signed:
    """Something that a key signed, and the module that had it signed."""

    public_key: bytes
    message: bytes
    module: str


@dataclass(frozen=True)
class Keys:
    """The two keys of an installation."""

    log: SigningKey
    signing: SigningKey


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> list[Signed]:
    """Everything that Core and the worker sign from now on."""
    made, sign = list[Signed](), SigningKey.sign

    def record(key: SigningKey, message: bytes) -> bytes:
        made.append(Signed(key.public_key, message, sys._getframe(1).f_globals["__name__"]))
        return sign(key, message)

    monkeypatch.setattr(SigningKey, "sign", record)
    return made


@pytest.fixture
async def keys(ctx: Context) -> Keys:
    """The keys that the log and Core sign with."""
    async with ctx.db.transaction() as tx:
        (log,) = await read_signers(ctx, tx)
        return Keys(log, await read_signing_key(tx, ctx.sealer))


def modules_that_sign() -> set[str]:
    """Return the modules in which a key of Ed25519 signs."""
    root = importlib.resources.files("soundmark")
    with importlib.resources.as_file(root) as folder:
        found = [file for file in folder.rglob("*.py") if re.search(r"key\.sign\(", file.read_text("utf-8"))]
        return {".".join(("soundmark", *file.relative_to(folder).with_suffix("").parts)) for file in found}


async def test_of_everything_that_is_signed_the_logs_key_signs_the_checkpoints_alone(
    core: Api, tenant: Tenant, keys: Keys, integrators: Integrators, stored: StoredLog, signed: list[Signed]
) -> None:
    """Everything that an installation signs is signed here once: the modules that sign are all there."""
    await fill(tenant)
    await export_organization(tenant)
    for subject in (project_of(tenant), organization_of(tenant)):
        await subject.certificate()
        await integrators().integrate_once()
    assert {each.module for each in signed} == modules_that_sign() - {WITNESS}
    by_log = [each for each in signed if each.public_key == keys.log.public_key]
    published = await stored.published()
    texts = [tlog.parse_checkpoint(each.message.decode()) for each in by_log]
    assert [text.origin for text in texts] == [stored.origin] * 2
    assert (texts[-1].size, texts[-1].root) == (published.size, published.root)
    others = [each for each in signed if each not in by_log]
    assert {each.public_key for each in others} == {keys.signing.public_key}
    assert all(isinstance(json.loads(each.message), dict) for each in others), "which is no text of a checkpoint"
    history = (await core.get("/v1/keys/history")).json["keys"]
    assert base64url.encode(keys.log.public_key) not in {key["x"] for key in history}


async def test_a_statement_that_the_logs_key_signed_is_refused(
    core: Api, tenant: Tenant, keys: Keys, subtests: pytest.Subtests
) -> None:
    certificate = await organization_of(tenant).certificate()
    trusted = read_key_history((await core.get("/v1/keys/history")).body)
    assert verify_certificate(certificate, trusted).subject_id == tenant.organization_id
    log_key_id = VerifierKey("core.test/v1/log", 1, keys.log.public_key).id.hex()
    for key_id in (certificate["key_id"], log_key_id, f"sig_{log_key_id}"):
        unsigned = {**certificate, "key_id": key_id}
        del unsigned["signature"]
        for key, by in ((keys.log, "the log"), (keys.signing, "Core")):
            signature = base64url.encode(key.sign(canonicalize(unsigned)))
            is_genuine = (key_id, by) == (certificate["key_id"], "Core")
            with subtests.test(by, key_id=key_id):
                if is_genuine:
                    verify_certificate({**unsigned, "signature": signature}, trusted)
                else:
                    with pytest.raises(CertificateRejected):
                        verify_certificate({**unsigned, "signature": signature}, trusted)


async def test_a_checkpoint_that_a_signing_key_signed_is_refused_by_everybody(
    keys: Keys, stored: StoredLog, witnesses: list[TheirWitness], subtests: pytest.Subtests
) -> None:
    """Neither under its own id nor under that of the log's key; nor if the log's key signed it as a cosignature."""
    entry = document_entry(b'"x"')
    checkpoint, vkey = Checkpoint(stored.origin, 1, hash_leaf(entry)), parse_verifier_key(stored.vkey)
    genuine = sign_checkpoint(checkpoint, [keys.log])
    text, by_core = genuine.text, sign_checkpoint(checkpoint, [keys.signing])
    under_its_id = NoteSignature(stored.origin, vkey.id, by_core.signatures[0].signature)
    as_cosignature = cosign(text, stored.origin, keys.log, at_s=1_800_000_000)
    cases = {
        "genuine": genuine,
        "its own id": by_core,
        "the log's id": Note(text, (under_its_id,)),
        "a cosignature": Note(text, (as_cosignature,)),
        "a cosignature under the log's id": Note(
            text, (NoteSignature(stored.origin, vkey.id, as_cosignature.signature[8:]),)
        ),
    }
    verifiers: dict[str, Callable[[str], Any]] = {
        "an auditor": lambda note: verify_checkpoint(note, [vkey]),
        "a receiver": lambda note: verify_log_proof(
            write_proof(entry, 0, [], note).encode(),
            LogPolicy(stored.vkey),
            "document.sealed/document",
            base64url.encode(digest("document.sealed", "document", b'"x"')),
        ),
        "others": lambda note: require_ok(
            tlog.verify_checkpoint(tlog.parse_note(note), tlog.parse_vkey(stored.vkey), expected_origin=stored.origin)
        ),
        "a witness": lambda note: httpx2.post(
            f"{witnesses[0].url}/add-checkpoint",
            content=aics.protocol.format_add_checkpoint_request(0, [], note.encode()),
        ).raise_for_status(),
    }
    for verifier, verify in verifiers.items():
        for case, note in cases.items():
            with subtests.test(verifier, case=case):
                if case == "genuine":
                    verify(str(note))
                else:
                    with pytest.raises((NotANote, Unverifiable, httpx2.HTTPStatusError, AssertionError)):
                        verify(str(note))


def require_ok(result: Any) -> None:
    assert result.ok, result


async def test_the_logs_key_is_no_witness(keys: Keys, stored: StoredLog) -> None:
    """Otherwise the log would count towards its own quorum."""
    with pytest.raises(NotANote, match="another type"):
        parse_verifier_key(stored.vkey, types=(COSIGNATURE,))
    with pytest.raises(ValueError, match="not a verifier key"):
        LogPolicy(stored.vkey, witnesses=[stored.vkey], quorum=1)
    note = sign_checkpoint(Checkpoint(stored.origin, 1, bytes(32)), [keys.log])
    assert not is_cosigned(note, VerifierKey(stored.origin, COSIGNATURE, keys.log.public_key))


async def test_write_access_to_the_database_does_not_give_a_key_the_other_role(ctx: Context, keys: Keys) -> None:
    """A seed is sealed for its table: copied from one to the other, it opens nothing."""
    async with ctx.db.transaction() as tx:
        ((seed,),) = await tx.rows("SELECT sealed_seed FROM signing_keys WHERE status = 'active'")
        await tx.run("UPDATE log_keys SET sealed_seed = %(seed)s", {"seed": seed})
        with pytest.raises(SealBroken):
            await read_signers(ctx, tx)
    async with ctx.db.transaction() as tx:
        sealed = ctx.sealer.seal(bytes(32), table="log_keys", column="sealed_seed", row=keys.signing.key_id)
        await tx.run("UPDATE signing_keys SET sealed_seed = %(seed)s WHERE status = 'active'", {"seed": sealed})
        with pytest.raises(SealBroken):
            await read_signing_key(tx, ctx.sealer)
