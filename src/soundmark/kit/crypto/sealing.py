"""Sealing secrets that must be revealed again: AES-256-GCM, bound to the place where the sealed value is stored."""

import hashlib
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.text import base64url

MASTER_KEY_BYTES: Final = 32
_VERSION: Final = b"\x01"
_FINGERPRINT_BYTES: Final = 8
_NONCE_BYTES: Final = 12  # NIST SP 800-38D, section 8.2.


class SealBroken(Exception):
    """An envelope does not open, because of another master key, another place, or altered bytes."""


class Sealer:
    """A master key, with which values are sealed and opened.

    An envelope is version (1 byte), fingerprint of the master key (8), nonce (12), ciphertext and tag. The place
    (table, column, row) is authenticated with it, so that an envelope moved to another row does not open.
    """

    def __init__(self, master_key: bytes, entropy: Entropy) -> None:
        if len(master_key) != MASTER_KEY_BYTES:
            raise ValueError("a master key is 32 bytes")
        self._master_key: Final = master_key
        self._cipher: Final = AESGCM(self.derive("sealing"))
        self._fingerprint: Final = hashlib.sha256(self.derive("fingerprint")).digest()[:_FINGERPRINT_BYTES]
        self._entropy: Final = entropy

    def seal(self, plaintext: bytes, *, table: str, column: str, row: str) -> bytes:
        """Return an envelope that opens only under this master key and at this place."""
        nonce = self._entropy.take(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, plaintext, _place(table, column, row))
        return _VERSION + self._fingerprint + nonce + sealed

    def unseal(self, envelope: bytes, *, table: str, column: str, row: str) -> bytes:
        """Return the text that was sealed.

        Raises: SealBroken.
        """
        header = _VERSION + self._fingerprint
        if not envelope.startswith(header):
            raise SealBroken("sealed under another master key")
        nonce_end = len(header) + _NONCE_BYTES
        nonce, sealed = envelope[len(header) : nonce_end], envelope[nonce_end:]
        try:
            return self._cipher.decrypt(nonce, sealed, _place(table, column, row))
        except (InvalidTag, ValueError):
            raise SealBroken(f"the envelope in {table}.{column} does not open") from None

    def derive(self, purpose: str) -> bytes:
        """Derive a 32-byte key for `purpose`, the same in every process with this master key (RFC 5869)."""
        return HKDF(algorithm=SHA256(), length=32, salt=None, info=f"soundmark/{purpose}".encode()).derive(
            self._master_key
        )


def parse_master_key(text: str) -> bytes:
    """Return the key that the text of a setting or key file encodes.

    Raises: ValueError unless it is 32 bytes in base64url without padding.
    """
    try:
        key = base64url.decode(text.strip())
    except ValueError:
        key = b""
    if len(key) != MASTER_KEY_BYTES:
        raise ValueError("must be 32 bytes in base64url without padding (43 characters)")
    return key


def _place(table: str, column: str, row: str) -> bytes:
    assert "\0" not in table + column + row, "the separator may not occur in a place"
    return f"{table}\0{column}\0{row}".encode()
