"""The secret that stays on a receiver, and the measurement tokens that are derived from it."""

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
# Names the purpose of the HMAC, so that no other value derived from the same secret can equal a token.
_PURPOSE: Final = b"soundmark-measurement-token-v1"
_OWNER_ONLY: Final = 0o600
_OTHERS: Final = 0o077


class DeviceSecretUnusable(Exception):
    """The file does not hold a device secret that only its owner can read. The message holds nothing of the file."""


class DeviceSecret:
    """32 random bytes that never leave a receiver. Only somebody who has them can link its tokens.

    The caller decides where to keep them: `open_device_secret` uses a file, and `reveal` returns them for a key chain.
    After the secret is rotated (another `new`), later tokens are unrelated to the earlier ones.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        """Raises: ValueError for any other number of bytes, without the bytes."""
        if len(secret) != SECRET_BYTES:
            raise ValueError("A device secret is 32 bytes.")
        self._secret: Final = bytes(secret)

    @classmethod
    def new(cls) -> Self:
        """Return a new random secret."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def reveal(self) -> bytes:
        """Return the bytes, for a store of the caller's choice."""
        return self._secret

    def derive_measurement_token(self, integration_id: str, day: date) -> str:
        """Return this receiver's token for one integration on one UTC day: `mt_` and 43 characters.

        It is the same all day, so that reach can be counted, and reveals nothing about the token of another day or
        integration: the HMAC-SHA-256 of both under this secret.

        Source: wire contract, section 6, "Event".
        """
        message = b"\0".join((_PURPOSE, integration_id.encode("ascii"), day.isoformat().encode("ascii")))
        return "mt_" + base64url.encode(hmac.new(self._secret, message, hashlib.sha256).digest())


def open_device_secret(path: str | os.PathLike[str]) -> DeviceSecret:
    """Return the secret in a file, and create the file with mode 0600 if it does not exist.

    Any number of programs may call this at the same time: one of them creates the file, and all get the same secret.

    Raises: DeviceSecretUnusable for a file of another size or kind, a symbolic link, or a file that others can read or
        write. OSError when the folder does not exist or cannot be written.
    """
    file = Path(path)
    with contextlib.suppress(FileNotFoundError):
        return _read(file)
    _create(file)
    return _read(file)


def _create(file: Path) -> None:
    """Write a whole secret beside the file, then link it into place unless another program was faster."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
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
        # Without blocking, because the file could be a named pipe, which would block for ever.
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
