"""Notes, checkpoints and cosignatures: others verify ours, and ours verify theirs."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.log.independent import tlog

from soundmark.core.domain.log.checkpoint import (
    Checkpoint,
    cosign,
    count_cosignatures,
    is_cosigned,
    parse_checkpoint,
    sign_checkpoint,
    verify_checkpoint,
)
from soundmark.core.domain.log.tree import Edge, hash_leaf
from soundmark.kit.crypto.signed_notes import (
    COSIGNATURE,
    ED25519,
    NotANote,
    Note,
    VerifierKey,
    parse_note,
    parse_verifier_key,
)
from soundmark.kit.crypto.signing import SigningKey

ORIGIN = "codes.example.org/v1/log"
SEED, WITNESS_SEED = bytes(32), bytes([1]) * 32
KEY, WITNESS = SigningKey.from_seed("log", SEED), SigningKey.from_seed("witness", WITNESS_SEED)
VKEY = VerifierKey(ORIGIN, ED25519, KEY.public_key)
WITNESS_VKEY = VerifierKey("witness.example", COSIGNATURE, WITNESS.public_key)
ENTRIES = [b"one", b"two", b"three", b"four", b"five"]
EDGE, _ = Edge(0, ()).grow([hash_leaf(entry) for entry in ENTRIES])
CHECKPOINT = Checkpoint(ORIGIN, len(ENTRIES), EDGE.root())
SIGNED = sign_checkpoint(CHECKPOINT, [KEY])
COSIGNED = Note(SIGNED.text, (*SIGNED.signatures, cosign(SIGNED.text, WITNESS_VKEY.name, WITNESS, at_s=1_800_000_000)))


def test_others_verify_our_checkpoint_and_cosignature() -> None:
    result = tlog.verify_checkpoint(
        tlog.parse_note(str(COSIGNED)),
        tlog.parse_vkey(str(VKEY)),
        [tlog.parse_vkey(str(WITNESS_VKEY))],
        1,
        expected_origin=ORIGIN,
    )
    assert result.ok, result


def test_we_verify_a_checkpoint_and_a_cosignature_of_others() -> None:
    theirs = tlog.Checkpoint(ORIGIN, CHECKPOINT.size, CHECKPOINT.root)
    note = tlog.sign_checkpoint(theirs, Ed25519PrivateKey.from_private_bytes(SEED), ORIGIN)
    assert str(SIGNED) == note.serialise(), "Ed25519 is deterministic"
    _, line = tlog.sign_cosignature(
        Ed25519PrivateKey.from_private_bytes(WITNESS_SEED), WITNESS_VKEY.name, 1_800_000_000, ORIGIN, 5, EDGE.root()
    )
    cosigned = tlog.Note(note.text, (*note.signatures, line)).serialise()
    signed = verify_checkpoint(cosigned, [VKEY])
    assert signed.checkpoint == CHECKPOINT
    assert is_cosigned(signed.note, WITNESS_VKEY)


def test_a_cosignature_counts_only_for_its_text_time_and_witness() -> None:
    line = COSIGNED.signatures[1]
    later = Note(COSIGNED.text, (type(line)(line.name, line.key_id, bytes(8) + line.signature[8:]),))
    other = Note(COSIGNED.text.replace("\n5\n", "\n6\n"), COSIGNED.signatures)
    twice = Note(COSIGNED.text, (line, line))
    beyond = Note(COSIGNED.text, (type(line)(line.name, line.key_id, b"\xff" * 8 + line.signature[8:]),))
    for note in (later, other, twice, beyond, SIGNED):
        assert count_cosignatures(note, [WITNESS_VKEY]) == 0
    assert count_cosignatures(COSIGNED, [WITNESS_VKEY]) == 1
    assert not is_cosigned(SIGNED, VKEY), "a log's own signature is no cosignature"


def test_the_largest_size_and_the_last_time_are_those_of_a_signed_number_of_64_bits() -> None:
    largest = sign_checkpoint(Checkpoint(ORIGIN, 2**63 - 1, bytes(32)), [KEY])
    assert parse_checkpoint(str(largest)).checkpoint.size == 2**63 - 1
    last = cosign(largest.text, WITNESS_VKEY.name, WITNESS, at_s=2**63 - 1)
    assert is_cosigned(Note(largest.text, (last,)), WITNESS_VKEY)


def test_a_malformed_note_is_refused(subtests: pytest.Subtests) -> None:
    text = str(SIGNED)
    wrong = {
        "no signature": SIGNED.text,
        "no last newline": text[:-1],
        "no dash": text.replace("— ", "- "),
        "control character": text.replace("5\n", "5\r\n"),
        "extension line": text.replace("=\n\n", "=\nmore\n\n"),
        "leading zero": text.replace("\n5\n", "\n05\n"),
        "too large": text.replace("\n5\n", "\n9223372036854775808\n"),
        "short root": f"{ORIGIN}\n5\nAAAA\n\n" + text.rpartition("\n\n")[2],
        "too long": text.replace("\n5\n", "\n" + "5" * 70_000 + "\n"),
        "many signatures": text + text.rpartition("\n\n")[2] * 100,
        "empty signature": text.rpartition("\n\n")[0] + "\n\n— name AAAA\n",
        "no origin": text.removeprefix(ORIGIN),
    }
    for name, note in wrong.items():
        with subtests.test(name), pytest.raises(NotANote):
            parse_checkpoint(note)
    with subtests.test("not UTF-8"), pytest.raises(NotANote):
        parse_note(b"\xff\n\n\xff\n")


def test_a_verifier_key_is_read_back_and_no_other_spelling_is(subtests: pytest.Subtests) -> None:
    assert parse_verifier_key(str(VKEY)) == VKEY
    assert parse_verifier_key(str(WITNESS_VKEY), types=(COSIGNATURE,)) == WITNESS_VKEY
    name, key_id, key = str(VKEY).split("+", 2)
    wrong = {
        "type": str(WITNESS_VKEY),
        "id": f"{name}+00000000+{key}",
        "upper case": f"{name}+{key_id.upper()}+{key}",
        "name": f"{name}x+{key_id}+{key}",
        "base64": f"{name}+{key_id}+{key}=",
        "short": f"{name}+{key_id}+AQ==",
        "empty": "",
    }
    for case, text in wrong.items():
        with subtests.test(case), pytest.raises(NotANote):
            parse_verifier_key(text)


def test_several_keys_sign_one_checkpoint_while_they_are_replaced() -> None:
    second = SigningKey.from_seed("second", bytes([2]) * 32)
    note = str(sign_checkpoint(CHECKPOINT, [second, KEY]))
    for key in (KEY, second):
        assert verify_checkpoint(note, [VerifierKey(ORIGIN, ED25519, key.public_key)]).checkpoint == CHECKPOINT
