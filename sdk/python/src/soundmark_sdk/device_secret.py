"""The secret that stays on a receiver, and the measurement tokens that come out of it."""

import contextlib
import hashlib
import hmac
import os
import secrets
import stat
from datetime import date
from pathlib import Path
from typing import Final, Self

from soundmark_sdk import base64url

SECRET_BYTES: Final = 32
# Names what the HMAC is for, so that nothing else which is ever made of the same secret can equal a token.
_PURPOSE: Final = b"soundmark-measurement-token-v1"
_ONLY_ITS_OWNER: Final = 0o600
_OTHERS: Final = 0o077


class DeviceSecretUnusable(Exception):  # noqa: N818 - an outcome, like MicrophoneUnavailable
    """The file does not hold a device secret that only its owner can read. Nothing in it is repeated here."""


class DeviceSecret:
    """32 random bytes of one receiver, which never leave it. Whoever has them can link its tokens; nobody else can.

    Where they are kept is the caller's: `open_device_secret` keeps them in a file, `reveal` hands them to a key chain.
    Forgetting them (another `new`) makes every later token unrelated to the earlier ones.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        """Raises: ValueError for anything but 32 bytes, without repeating them."""
        if len(secret) != SECRET_BYTES:
            raise ValueError("A device secret is 32 bytes.")
        self._secret: Final = bytes(secret)

    @classmethod
    def new(cls) -> Self:
        """Return a secret that nobody had before."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def reveal(self) -> bytes:
        """Return the bytes, for the store that the caller chose."""
        return self._secret

    def measurement_token(self, integration_id: str, day: date) -> str:
        """Return this receiver's token for one integration on one UTC day: `mt_` and 43 characters.

        It is the same all day, so that reach can be counted, and says nothing about the token of another day or another
        integration: HMAC-SHA-256 under this secret, of the two.

        Source: wire contract, section 6, "Event".
        """
        said = b"\0".join((_PURPOSE, integration_id.encode("ascii"), day.isoformat().encode("ascii")))
        return "mt_" + base64url.encode(hmac.new(self._secret, said, hashlib.sha256).digest())


def open_device_secret(path: str | os.PathLike[str]) -> DeviceSecret:
    """Return the secret that a file holds; a file that is not there is made, for its owner's eyes only (mode 0600).

    Any number of programs may open it at the same time: one of them makes it, and all of them get the same.

    Raises: DeviceSecretUnusable for a file of another size or kind, a symbolic link, or one that others may read or
        write. OSError when the folder is not there or cannot be written.
    """
    file = Path(path)
    with contextlib.suppress(FileNotFoundError):
        return _read(file)
    _create(file)
    return _read(file)


def _create(file: Path) -> None:
    """Write a new secret beside the file, then put it in its place unless somebody was faster: never half of one."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _ONLY_ITS_OWNER)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(DeviceSecret.new().reveal())
            opened.flush()
            os.fsync(opened.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink()


def _read(file: Path) -> DeviceSecret:
    try:
        # Without blocking, so that a named pipe in the file's place does not hold us for ever.
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError:
        raise DeviceSecretUnusable("The device secret's file cannot be opened, or is a symbolic link.") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise DeviceSecretUnusable("The device secret is not a regular file.")
        if status.st_mode & _OTHERS:
            raise DeviceSecretUnusable("The device secret's file is open to others; its mode must be 0600.")
        held = os.read(descriptor, SECRET_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(held) != SECRET_BYTES:
        raise DeviceSecretUnusable("The device secret's file does not hold 32 bytes.")
    return DeviceSecret(held)
