"""A log that others made: `aics-tlog` writes its tree, tiles and checkpoints, `aics-witness` its requests."""

from collections.abc import Iterable
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from support.log.independent import tlog, witness


class OtherLog:
    """A log with these entries. Two with the same origin and other entries are two views of one log."""

    def __init__(self, entries: Iterable[bytes], origin: str = "other.test/v1/log", seed: int = 7) -> None:
        self.entries: Final = list(entries)
        self.origin: Final = origin
        self.tree: Final = tlog.MerkleTree(self.entries)
        self._key: Final = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.vkey: Final = str(tlog.format_vkey(tlog.vkey_from_ed25519(origin, self._key.public_key())))

    def checkpoint(self, size: int | None = None) -> bytes:
        """Return the signed checkpoint of the first `size` entries, by default of all."""
        size = len(self.entries) if size is None else size
        described = tlog.Checkpoint(origin=self.origin, size=size, root=self.tree.root(size))
        signed: bytes = tlog.sign_checkpoint(described, self._key, self.origin).to_bytes()
        return signed

    def prove(self, old_size: int, size: int) -> list[bytes]:
        """Return the proof that the tree of `size` entries begins with the one of `old_size`."""
        proof: list[bytes] = self.tree.consistency_proof(old_size, size)
        return proof

    def ask(self, old_size: int, size: int | None = None, *, proof: list[bytes] | None = None) -> bytes:
        """Return the body of a request to cosign the first `size` entries, by default all."""
        size = len(self.entries) if size is None else size
        proof = self.prove(min(old_size, size), size) if proof is None else proof
        body: bytes = witness.protocol.format_add_checkpoint_request(old_size, proof, self.checkpoint(size))
        return body

    def tiles(self) -> dict[str, bytes]:
        """Return every tile and bundle, by its path below the log's prefix."""
        written: dict[str, Any] = tlog.tiles.materialise_tiles(self.entries)
        return written

    def is_cosigned(self, answer: str, vkey: str, size: int | None = None) -> bool:
        """Return whether a witness's answer is its cosignature of the first `size` entries, by default of all."""
        key, note = tlog.parse_vkey(vkey), tlog.parse_note(self.checkpoint(size))
        described = tlog.parse_checkpoint(note.text)
        (line,) = witness.protocol.parse_signature_lines(answer)
        return bool(
            (line.name, line.key_id) == (key.name, key.key_id)
            and tlog.verify_cosignature(
                line.signature, key.name, key.public_key, described.origin, described.size, described.root
            )
        )
