"""Signed notes: a text, and lines with signatures of it.

Source: C2SP, signed-note.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from soundmark.kit.crypto.signing import PUBLIC_KEY_BYTES, SigningKey, verifies

ED25519: Final = 0x01
COSIGNATURE: Final = 0x04  # C2SP, tlog-cosignature.
KEY_ID_BYTES: Final = 4
NOTE_BYTES_MAX: Final = 64 * 1024
SIGNATURES_MAX: Final = 100
_DASH: Final = "— "
_NAME: Final = re.compile(r"[^\s+\x00-\x1f\x7f\ufeff]{1,255}")
_VKEY: Final = re.compile(r"([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)")


class NotANote(ValueError):
    """The bytes are no signed note, or the text no verifier key; the message says why."""


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """The name and public key of somebody who signs notes, of a type as in signed-note."""

    name: str
    type: int
    public_key: bytes

    @property
    def id(self) -> bytes:
        """The 4 bytes by which a signature names its key."""
        material = self.name.encode() + b"\n" + bytes([self.type]) + self.public_key
        return hashlib.sha256(material).digest()[:KEY_ID_BYTES]

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{encode(bytes([self.type]) + self.public_key)}"


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One line of a note: who signed, and with what result."""

    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"{_DASH}{self.name} {encode(self.key_id + self.signature)}\n"


@dataclass(frozen=True, slots=True)
class Note:
    """A note. The text ends with a newline."""

    text: str
    signatures: tuple[NoteSignature, ...]

    def __str__(self) -> str:
        return self.text + "\n" + "".join(map(str, self.signatures))

    def of(self, key: VerifierKey) -> bytes | None:
        """Return the only signature that claims to be of this key; None without one, or with several."""
        found = [each.signature for each in self.signatures if (each.name, each.key_id) == (key.name, key.id)]
        return found[0] if len(found) == 1 else None

    def is_signed_by(self, key: VerifierKey) -> bool:
        """Return whether the key, which is of the type Ed25519, signed this text."""
        signature = self.of(key)
        return signature is not None and key.type == ED25519 and verifies(key.public_key, self.text.encode(), signature)


def sign_note(text: str, signers: Iterable[tuple[str, SigningKey]]) -> Note:
    """Return the note with the text, signed by each key under its name."""
    return Note(
        text,
        tuple(
            NoteSignature(name, VerifierKey(name, ED25519, key.public_key).id, key.sign(text.encode()))
            for name, key in signers
        ),
    )


def parse_note(data: bytes | str) -> Note:
    """Return the note with these bytes.

    Raises: NotANote.
    """
    try:
        whole = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        raise NotANote("is not UTF-8") from None
    if len(whole) > NOTE_BYTES_MAX:
        raise NotANote("is too long")
    text, blank, lines = whole.rpartition("\n\n")
    if not blank or not lines.endswith("\n") or any(each < " " and each != "\n" for each in whole):
        raise NotANote("has no signatures, or control characters")
    return Note(text + "\n", parse_signatures(lines))


def parse_signatures(lines: str) -> tuple[NoteSignature, ...]:
    """Return the signatures in lines of a note.

    Raises: NotANote.
    """
    found = []
    for line in lines.removesuffix("\n").split("\n"):
        name, space, signed = line.removeprefix(_DASH).partition(" ")
        raw = decode(signed)
        if not line.startswith(_DASH) or not space or not _NAME.fullmatch(name) or len(raw) <= KEY_ID_BYTES:
            raise NotANote("has a malformed signature")
        found.append(NoteSignature(name, raw[:KEY_ID_BYTES], raw[KEY_ID_BYTES:]))
    if len(found) > SIGNATURES_MAX:
        raise NotANote("has too many signatures")
    return tuple(found)


def is_name(text: str) -> bool:
    """Return whether a key may have this name."""
    return _NAME.fullmatch(text) is not None


def parse_verifier_key(text: str, *, types: tuple[int, ...] = (ED25519,)) -> VerifierKey:
    """Return the key of a `vkey`.

    Raises: NotANote for a malformed one, for one of another type, and if its id is not that of its key.
    """
    match = _VKEY.fullmatch(text)
    if match is None:
        raise NotANote("is not a vkey, such as example.org/log+0123abcd+AXaQ…")
    name, key_id, encoded = match.groups()
    raw = decode(encoded)
    key = VerifierKey(name, raw[0] if raw else 0, raw[1:])
    if key.type not in types or len(key.public_key) != PUBLIC_KEY_BYTES:
        allowed = " or ".join(f"{each:02x}" for each in types)
        raise NotANote(f"is a vkey of another type than {allowed}")
    if key.id.hex() != key_id:
        raise NotANote("is a vkey whose id does not belong to its key")
    return key


def encode(data: bytes) -> str:
    """Return standard base64, with padding."""
    return base64.b64encode(data).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes for which `encode` returns exactly this text.

    Raises: NotANote.
    """
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise NotANote("has malformed base64") from None
    if encode(data) != text:
        raise NotANote("has malformed base64")
    return data
