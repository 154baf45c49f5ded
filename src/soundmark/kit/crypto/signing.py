"""Ed25519 (RFC 8032): key pairs, verification, and the keyring with the key that signs now."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from nacl.bindings import crypto_sign, crypto_sign_BYTES, crypto_sign_open, crypto_sign_seed_keypair
from nacl.exceptions import BadSignatureError

SEED_BYTES: Final = 32
SIGNATURE_BYTES: Final = crypto_sign_BYTES
PUBLIC_KEY_BYTES: Final = 32

KeyStatus = Literal["next", "active", "retiring", "retired"]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key pair that can sign. Its representation shows the id only."""

    key_id: str
    public_key: bytes
    _expanded: bytes

    @classmethod
    def from_seed(cls, key_id: str, seed: bytes) -> "SigningKey":
        """Return the key pair of a 32-byte seed (RFC 8032, section 5.1.5)."""
        public_key, expanded = crypto_sign_seed_keypair(seed)
        return cls(key_id, public_key, expanded)

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature over exactly these bytes."""
        return crypto_sign(message, self._expanded)[:SIGNATURE_BYTES]

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id!r})"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that can verify, and its status."""

    key_id: str
    public_key: bytes
    status: KeyStatus


class Keyring:
    """The keys at one moment: the one that signs, and all others that are known."""

    def __init__(self, keys: Mapping[str, PublicKey], active: SigningKey) -> None:
        self.keys: Final = MappingProxyType(dict(keys))
        self.active: Final = active

    def verifies(self, key_id: str, message: bytes, signature: bytes) -> bool:
        """Return whether the key with exactly this id made `signature` over `message`; False for an unknown key."""
        key = self.keys.get(key_id)
        return key is not None and verifies(key.public_key, message, signature)


def verifies(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether `signature` is by `public_key` over exactly `message`."""
    # The binding does not check the key's length, and would read beyond the end of a shorter key.
    if len(signature) != SIGNATURE_BYTES or len(public_key) != PUBLIC_KEY_BYTES:
        return False
    try:
        crypto_sign_open(signature + message, public_key)
    except BadSignatureError:
        return False
    return True
