"""Proofs of the transparency log: whatever is altered in one, it proves nothing."""

import hashlib
import json
from typing import Any

import pytest
import soundmark_sdk
from soundmark_sdk import LogPolicy, commit, verify_log_proof
from soundmark_sdk.failures import Unverifiable

from .genuine_log import ORIGIN, GenuineLog, Signer, digest_of, encode, encode_url

ANSWER = {"xr_id": "xr_1", "token_digest": "d", "intent": {"type": "link"}, "policy": {"version": 1}}


@pytest.fixture
def log_key() -> Signer:
    """The log's key."""
    return Signer(ORIGIN)


@pytest.fixture
def witness() -> Signer:
    """A witness."""
    return Signer("witness.example", 4)


def issued(number: int, answer: object = ANSWER) -> dict[str, Any]:
    code = encode_url(hashlib.sha256(str(number).encode()).digest())
    return {"v": 1, "kind": "code.issued", "code": code, "answer": digest_of("code.issued/answer", answer)}


def make_log(size: int, *signers: Signer) -> GenuineLog:
    log = GenuineLog(list(signers))
    for number in range(size):
        log.add(issued(number, {**ANSWER, "xr_id": f"xr_{number}"}))
    return log


def test_every_entry_of_trees_of_every_shape_is_proven(log_key: Signer, witness: Signer) -> None:
    policy = LogPolicy(log_key.vkey, [witness.vkey], 1)
    for size in (1, 2, 3, 4, 5, 7, 8, 13, 33):
        log = make_log(size, log_key, witness)
        for index in range(size):
            digest = commit("code.issued/answer", {**ANSWER, "xr_id": f"xr_{index}"})
            found = verify_log_proof(log.prove(index).encode(), policy, "code.issued/answer", digest)
            assert (found.index, found.size, found.cosignatures) == (index, size, 1)


def test_no_altered_byte_of_a_proof_is_accepted(log_key: Signer, witness: Signer) -> None:
    """Neither of its entry, path and checkpoint, nor of a cosignature that is needed."""
    log, policy = make_log(5, log_key, witness), LogPolicy(log_key.vkey, [witness.vkey], 1)
    digest = commit("code.issued/answer", {**ANSWER, "xr_id": "xr_2"})
    proof = log.prove(2).encode()
    assert verify_log_proof(proof, policy, "code.issued/answer", digest).cosignatures == 1
    for place in range(len(proof)):
        altered = proof[:place] + bytes([proof[place] ^ 1]) + proof[place + 1 :]
        with pytest.raises(Unverifiable):
            verify_log_proof(altered, policy, "code.issued/answer", digest)


def test_a_proof_of_something_else_proves_nothing(log_key: Signer, subtests: pytest.Subtests) -> None:
    digest = commit("code.issued/answer", ANSWER)
    entry = issued(0)
    others = {
        "another kind": {"v": 1, "kind": "code.revoked", "code": digest},
        "another version": {**entry, "v": 2},
        "no version": {**entry, "v": True},
        "one more member": {**entry, "xr_id": "xr_1"},
        "one less": {"v": 1, "kind": "code.issued", "answer": digest},
        "another answer": issued(0, {**ANSWER, "xr_id": "xr_2"}),
        "no digest": {**entry, "code": "abc"},
    }
    for name, other in others.items():
        log = GenuineLog([log_key])
        index = log.add(other)
        with subtests.test(name), pytest.raises(Unverifiable):
            verify_log_proof(log.prove(index).encode(), LogPolicy(log_key.vkey), "code.issued/answer", digest)


def test_the_entry_must_be_in_its_canonical_form(log_key: Signer) -> None:
    log = GenuineLog([log_key], [json.dumps(issued(0)).encode()])
    with pytest.raises(Unverifiable):
        verify_log_proof(
            log.prove(0).encode(), LogPolicy(log_key.vkey), "code.issued/answer", commit("code.issued/answer", ANSWER)
        )


def test_signers_that_are_not_in_the_policy_do_not_count(
    log_key: Signer, witness: Signer, subtests: pytest.Subtests
) -> None:
    digest = commit("code.issued/answer", ANSWER)
    impostor = Signer(witness.name, 4)
    cases = {
        "another log's key": ([Signer(ORIGIN)], LogPolicy(log_key.vkey)),
        "no witness": ([log_key], LogPolicy(log_key.vkey, [witness.vkey], 1)),
        "a witness of the same name": ([log_key, impostor], LogPolicy(log_key.vkey, [witness.vkey], 1)),
        "one of two": (
            [log_key, witness],
            LogPolicy(log_key.vkey, [witness.vkey, Signer("other.example", 4).vkey], 2),
        ),
    }
    for name, (signers, policy) in cases.items():
        log = GenuineLog(signers)
        log.add(issued(0))
        with subtests.test(name), pytest.raises(Unverifiable):
            verify_log_proof(log.prove(0).encode(), policy, "code.issued/answer", digest)


def test_a_key_of_the_log_signs_for_its_origin_alone(log_key: Signer) -> None:
    log = GenuineLog([log_key])
    log.add(issued(0))
    text = log.checkpoint("other.example/v1/log")
    with pytest.raises(Unverifiable):
        verify_log_proof(
            log.prove(0, text=text).encode(),
            LogPolicy(log_key.vkey),
            "code.issued/answer",
            commit("code.issued/answer", ANSWER),
        )


def test_either_key_is_enough_while_the_logs_key_is_rolled(log_key: Signer) -> None:
    log = GenuineLog([log_key])
    log.add(issued(0))
    policy = LogPolicy([Signer(ORIGIN).vkey, log_key.vkey])
    digest = commit("code.issued/answer", ANSWER)
    assert verify_log_proof(log.prove(0).encode(), policy, "code.issued/answer", digest).size == 1


def test_an_impossible_policy_is_refused(log_key: Signer, witness: Signer, subtests: pytest.Subtests) -> None:
    raw = bytes([1]) + bytes(log_key.key.verify_key)
    impossible: list[tuple[Any, ...]] = [
        ("",),
        (witness.vkey,),
        (log_key.vkey, [log_key.vkey]),
        (log_key.vkey.replace("core", "c+re"),),
        (f"{log_key.vkey}=",),
        (Signer("a\ufeffb").vkey,),
        (f"{ORIGIN}+00000000+{encode(raw)}",),
        ([log_key.vkey, Signer("other.example/log").vkey],),
        ([],),
        (log_key.vkey, [witness.vkey, witness.vkey], 1),
        (log_key.vkey, [witness.vkey], 2),
        (log_key.vkey, [], -1),
    ]
    for arguments in impossible:
        with subtests.test(arguments), pytest.raises(ValueError, match=r"."):
            LogPolicy(*arguments)


def test_a_value_without_a_canonical_form_has_no_commitment() -> None:
    with pytest.raises(Unverifiable):
        commit("code.issued/answer", {"xr_id": 2**60})
    assert soundmark_sdk.commit("document.sealed/document", {"a": 1}) == digest_of("document.sealed/document", {"a": 1})
