"""A genuine transparency log and audit chain, made with hashlib, PyNaCl and rfc8785 alone."""

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any

import rfc8785
from nacl.signing import SigningKey

ORIGIN = "core.example/v1/log"


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def encode_url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def digest_of(tag: str, value: Any) -> str:
    return encode_url(hashlib.sha256(f"soundmark/log/v1/{tag}\0".encode() + rfc8785.dumps(value)).digest())


def root_of(leaves: list[bytes]) -> bytes:
    """Return the Merkle tree hash of RFC 6962, section 2.1, by its definition."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def path_of(leaves: list[bytes], index: int) -> list[bytes]:
    """Return the audit path of RFC 6962, section 2.1.1, by its definition."""
    if len(leaves) == 1:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if index < half:
        return [*path_of(leaves[:half], index), root_of(leaves[half:])]
    return [*path_of(leaves[half:], index - half), root_of(leaves[:half])]


@dataclass
class Signer:
    """A key that signs notes: the log's (type 1), or a witness's (type 4)."""

    name: str
    type: int = 1
    key: SigningKey = field(default_factory=SigningKey.generate)

    @property
    def id(self) -> bytes:
        return hashlib.sha256(f"{self.name}\n".encode() + self._raw).digest()[:4]

    @property
    def vkey(self) -> str:
        return f"{self.name}+{self.id.hex()}+{encode(self._raw)}"

    @property
    def _raw(self) -> bytes:
        return bytes([self.type]) + bytes(self.key.verify_key)

    def sign(self, text: str) -> str:
        if self.type == 1:
            signature = self.key.sign(text.encode()).signature
        else:
            at_s = 1_795_000_000
            signed = self.key.sign(f"cosignature/v1\ntime {at_s}\n{text}".encode()).signature
            signature = at_s.to_bytes(8, "big") + signed
        return f"— {self.name} {encode(self.id + signature)}\n"


@dataclass
class GenuineLog:
    """The entries of a log, and who signs its checkpoints."""

    signers: list[Signer]
    entries: list[bytes] = field(default_factory=list)

    def add(self, entry: dict[str, Any]) -> int:
        self.entries.append(rfc8785.dumps(entry))
        return len(self.entries) - 1

    def checkpoint(self, origin: str = ORIGIN) -> str:
        return f"{origin}\n{len(self.entries)}\n{encode(root_of(self.entries))}\n"

    def prove(self, index: int, *, text: str | None = None) -> str:
        text = self.checkpoint() if text is None else text
        path = "".join(f"{encode(each)}\n" for each in path_of(self.entries, index))
        signatures = "".join(signer.sign(text) for signer in self.signers)
        return (
            f"c2sp.org/tlog-proof@v1\nextra {encode(self.entries[index])}\nindex {index}\n{path}\n{text}\n{signatures}"
        )


def chain(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries with their places in a chain."""
    chained, previous = [], bytes(32)
    for position, entry in enumerate(entries, 1):
        placed = {**entry, "position": position}
        previous = hashlib.sha256(previous + rfc8785.dumps(placed)).digest()
        chained.append({**placed, "chain_hash": encode_url(previous)})
    return chained
