"""Whom to believe about a log: its keys, and how many witnesses must have seen the same log."""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import nacl.exceptions
from nacl.signing import VerifyKey

_LOG_KEY: Final = 1  # Ed25519 (C2SP, signed-note).
_WITNESS_KEY: Final = 4  # Ed25519 with a time (C2SP, tlog-cosignature).
_ID_BYTES: Final = 4
# Python and JavaScript disagree about spaces: a name has nothing that either takes for one, and no control character.
NAME: Final = r"[^\s+\x00-\x1f\x7f\ufeff]+"
_VKEY: Final = re.compile(rf"({NAME})\+([0-9a-f]{{8}})\+([A-Za-z0-9+/]{{44}})")


@dataclass(frozen=True, slots=True)
class NoteKey:
    """A key that signs notes, by its name and id."""

    name: str
    id: bytes
    key: VerifyKey

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Return whether the key signed exactly these bytes."""
        try:
            self.key.verify(message, signature)
        except (nacl.exceptions.CryptoError, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class LogPolicy:
    """The log that must hold an entry, and the witnesses of which `quorum` must have cosigned its checkpoint.

    `vkey` is the log's key, or several while it is rotated, as `GET /v1/log` shows them. Get it from a source that
    you trust and pin it; do not ask the service for it each time. Without a quorum, the log alone is believed not to
    show others another tree.

    Raises: ValueError for a text that is no Ed25519 `vkey`, keys of several logs, a witness named twice, or a quorum
        that the witnesses cannot reach.
    Source: C2SP, signed-note and tlog-cosignature.
    """

    vkey: str | Sequence[str]
    witnesses: Sequence[str] = ()
    quorum: int = 0
    log_keys: tuple[NoteKey, ...] = field(init=False, repr=False)
    witness_keys: tuple[NoteKey, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the keys."""
        vkeys = (self.vkey,) if isinstance(self.vkey, str) else tuple(self.vkey)
        object.__setattr__(self, "log_keys", _read_keys(vkeys, _LOG_KEY))
        object.__setattr__(self, "witness_keys", _read_keys(self.witnesses, _WITNESS_KEY))
        if len({key.name for key in self.log_keys}) != 1:
            raise ValueError("A policy has the keys of one log.")
        if len({key.key for key in self.witness_keys}) != len(self.witness_keys):
            raise ValueError("A witness is named twice.")
        if not 0 <= self.quorum <= len(self.witness_keys):
            raise ValueError("There are not as many witnesses as the quorum.")

    @property
    def origin(self) -> str:
        """The name of the log."""
        return self.log_keys[0].name


def _read_keys(vkeys: Iterable[str], kind: int) -> tuple[NoteKey, ...]:
    return tuple(_read_key(vkey, kind) for vkey in vkeys)


def _read_key(vkey: str, kind: int) -> NoteKey:
    match = _VKEY.fullmatch(vkey)
    raw = base64.b64decode(match[3]) if match else b""  # 44 letters are 33 bytes: the kind and the point.
    if match is None or raw[0] != kind:
        raise ValueError("That is not a verifier key (vkey) of Ed25519.")
    key_id = hashlib.sha256(f"{match[1]}\n".encode() + raw).digest()[:_ID_BYTES]
    if key_id.hex() != match[2]:
        raise ValueError("The id of a verifier key does not fit its name and key.")
    return NoteKey(match[1], key_id, VerifyKey(raw[1:]))
