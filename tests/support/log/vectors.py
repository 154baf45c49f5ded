"""The published vectors of the transparency log: entries with their digests, and proofs, of which some are refused."""

import hashlib
import json
from typing import Any, Final

from soundmark.core.domain.log.checkpoint import Checkpoint, cosign, sign_checkpoint, write_proof
from soundmark.core.domain.log.entry import digest
from soundmark.core.domain.log.tree import Edge, hash_leaf, plan_inclusion
from soundmark.core.edge.examples import CODE, EXAMPLE_KEY
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signed_notes import COSIGNATURE, ED25519, Note, VerifierKey
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url

Json = dict[str, Any]

_ORIGIN: Final = "codes.example.org/v1/log"
_WITNESS_NAME: Final = "witness.example.net/w1"
_LOG_SEED, _WITNESS_SEED, _OTHER_SEED = (bytes([number]) * 32 for number in (101, 102, 103))
_LOG_KEY, _WITNESS_KEY, _OTHER_KEY = (
    SigningKey.from_seed("", seed) for seed in (_LOG_SEED, _WITNESS_SEED, _OTHER_SEED)
)
_AT_S: Final = 1_795_000_000
_SIZE: Final = 300  # Two tiles of level 0.
_INDEX: Final = 258


def log_vectors() -> Json:
    """Return the document of docs/vectors."""
    return {
        "description": "The transparency log. `digests` are SHA-256, base64url, of `soundmark/log/v1/`, the path, a "
        "zero byte and the RFC 8785 bytes of the value; `entry` is the UTF-8 text of a leaf. Each of `proofs` is a "
        "tlog-proof of the first entry, against `log` and, with `quorum` 1, `witness`; each of `refused` is not.",
        "log": {"vkey": str(VerifierKey(_ORIGIN, ED25519, _LOG_KEY.public_key)), "seed": base64url.encode(_LOG_SEED)},
        "witness": {
            "vkey": str(VerifierKey(_WITNESS_NAME, COSIGNATURE, _WITNESS_KEY.public_key)),
            "seed": base64url.encode(_WITNESS_SEED),
        },
        "entries": [_case(name, kind, values, named) for name, kind, values, named in _values()],
        "proofs": [
            {"name": name, "proof": proof, "quorum": quorum}
            for name, proof, quorum in (
                ("of the last leaf but 41", _proof(), 0),
                ("the same, cosigned", _proof(), 1),
                ("in a tree of one leaf", _proof(size=1, index=0), 1),
            )
        ],
        "refused": [{"name": name, "proof": proof, "quorum": quorum} for name, proof, quorum in _refused()],
    }


def prove_document(canonical: bytes) -> Json:
    """Return the keys that a verifier believes, and proofs of a signed document, of which some are refused."""
    entry = canonicalize(
        {
            "v": 1,
            "kind": "document.sealed",
            "document": base64url.encode(digest("document.sealed", "document", canonical)),
        }
    )
    cosigned, bare = _proof(entry=entry), _proof(entry=entry, is_cosigned=False)
    vectors = log_vectors()
    return {
        "log": vectors["log"]["vkey"],
        "witness": vectors["witness"]["vkey"],
        "accepted": [{"proof": bare, "quorum": 0}, {"proof": cosigned, "quorum": 1}],
        "refused": [
            {"name": "not cosigned", "proof": bare, "quorum": 1},
            {"name": "by another key", "proof": _proof(entry=entry, signer=_OTHER_KEY), "quorum": 0},
            {"name": "of another document", "proof": _proof(), "quorum": 0},
            {"name": "not a proof", "proof": "nothing", "quorum": 0},
        ],
    }


def _values() -> list[tuple[str, str, Json, Json]]:
    """Return the name, the kind, the values of the digests and the other members of each entry."""
    signed = {**json.loads(CODE.payload), "signature": base64url.encode(CODE.signature)}
    answer = {name: signed[name] for name in ("xr_id", "token_digest", "intent", "policy")}
    key = {"kid": EXAMPLE_KEY.key_id, "x": base64url.encode(EXAMPLE_KEY.public_key)}
    head = {"organization_id": CODE.organization_id, "entries": 1742, "chain_hash": base64url.encode(bytes(32))}
    document = {"version": 1, "certificate_id": "dct_example", "key_id": EXAMPLE_KEY.key_id, "signature": "…"}
    return [
        ("an issued Code", "code.issued", {"code": signed, "answer": answer}, {}),
        ("a revoked Code", "code.revoked", {"code": signed}, {}),
        *((f"a key: {kind}", f"key.{kind}", {"key": key}, key) for kind in ("published", "activated", "superseded")),
        ("a key: retired", "key.retired", {"key": key}, key),
        ("the head of an audit chain", "audit.head", {"head": head}, {}),
        ("a document", "document.sealed", {"document": document}, {}),
    ]


def _case(name: str, kind: str, values: Json, named: Json) -> Json:
    digests = {member: base64url.encode(digest(kind, member, canonicalize(value))) for member, value in values.items()}
    return {
        "name": name,
        "values": {f"{kind}/{member}": value for member, value in values.items()},
        "digests": {f"{kind}/{member}": text for member, text in digests.items()},
        "entry": canonicalize({"v": 1, "kind": kind, **digests, **named}).decode(),
    }


def _entry() -> bytes:
    case = _case(*_values()[0])
    return str(case["entry"]).encode()


def _proof(
    *,
    size: int = _SIZE,
    index: int = _INDEX,
    signer: SigningKey = _LOG_KEY,
    origin: str = _ORIGIN,
    is_cosigned: bool = True,
    entry: bytes | None = None,
) -> str:
    """Return a proof of an entry, by default the first, in a tree whose other leaves are unknown."""
    entry = _entry() if entry is None else entry
    leaves = [hash_leaf(b"leaf %d" % number) for number in range(size)]
    leaves[index] = hash_leaf(entry)
    edge, tiles = Edge(0, ()).grow(leaves)
    note = sign_checkpoint(Checkpoint(origin, size, edge.root()), [signer])
    if is_cosigned:
        line = cosign(note.text, _WITNESS_NAME, _WITNESS_KEY, at_s=_AT_S)
        note = Note(note.text, (*note.signatures, line))
    return write_proof(entry, index, plan_inclusion(index, size).read(tiles), str(note))


def _refused() -> list[tuple[str, str, int]]:
    good = _proof()
    lines = good.split("\n")
    other = write_proof(b"{}", 0, [], "").split("\n")[1]

    def changed(at: int, text: str) -> str:
        return "\n".join([*lines[:at], text, *lines[at + 1 :]])

    return [
        ("by another key", _proof(signer=_OTHER_KEY), 0),
        ("of another origin", _proof(origin="codes.example.com/v1/log"), 0),
        ("not cosigned", _proof(is_cosigned=False), 1),
        ("of another entry", changed(1, other), 0),
        ("without an entry", "\n".join([lines[0], *lines[2:]]), 0),
        ("at another index", changed(2, f"index {_INDEX + 1}"), 0),
        ("with an index that begins with a zero", changed(2, f"index 0{_INDEX}"), 0),
        ("with an altered hash", changed(3, "A" * 43 + "="), 0),
        ("without its last hash", good.replace(lines[lines.index("") - 1] + "\n\n", "\n", 1), 0),
        ("with a larger tree", good.replace(f"\n{_SIZE}\n", f"\n{_SIZE + 1}\n"), 0),
        ("of another version", changed(0, "c2sp.org/tlog-proof@v2"), 0),
        ("with an extension line", good.replace("=\n\n—", "=\nmore\n\n—"), 0),
        ("with a hash of another length", _proof_of_short_hash(), 0),
        ("with a signer whose name has a control character", f"{good}— a\x1cb AAAA\n", 0),
        ("with a signer whose name has a byte order mark", f"{good}— a\ufeffb AAAA\n", 0),
        ("with a cosignature of another time", _altered_cosignature(good), 1),
        ("empty", "", 0),
    ]


def _proof_of_short_hash() -> str:
    entry, sibling = _entry(), bytes(31)
    root = hashlib.sha256(b"\1" + hash_leaf(entry) + sibling).digest()
    return write_proof(entry, 0, [sibling], str(sign_checkpoint(Checkpoint(_ORIGIN, 2, root), [_LOG_KEY])))


def _altered_cosignature(good: str) -> str:
    line = good.rstrip("\n").rpartition("\n")[2]
    name, _, encoded = line.rpartition(" ")
    return good.replace(line, f"{name} {encoded[:6]}{'B' if encoded[6] == 'A' else 'A'}{encoded[7:]}")
