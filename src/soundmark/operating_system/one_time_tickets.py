"""Tickets that each open one thing once, for any process that shares a folder with the process that issues them.

A ticket is a file, named by the ticket's SHA-256, so that a listing of the folder shows no ticket. Redeeming it removes
the file, which the kernel does for one process only. The file's time of modification says when it was issued.
"""

import contextlib
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Final

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.text.ids import mint_secret
from soundmark.operating_system.files import require_trusted_folder
from soundmark.operating_system.os_user import OsUser

# Long enough to start everything and find the terminal again, too short for a link in its scrollback or in a log.
LIFETIME_S: Final = 3600.0
_TICKET: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def make_ticket_folder(folder: Path, owner: OsUser | None) -> None:
    """Create the folder for `owner` (None: ourselves), who redeems the tickets; tickets of an earlier one are removed.

    Nobody else may be able to write to the folder's parent.
    """
    remove_ticket_folder(folder)
    folder.mkdir(mode=0o700)
    if owner is not None:
        os.chown(folder, owner.uid, owner.gid)


def remove_ticket_folder(folder: Path) -> None:
    """Remove the folder and its tickets, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def issue_ticket(folder: Path, clock: Clock, entropy: Entropy) -> str:
    """Return a new ticket: 43 characters with 256 random bits. It is good for an hour.

    Raises: OSError if there is no folder, or it cannot be written to.
    """
    ticket, now_s = mint_secret(entropy, ""), clock.unix_s()
    handle = os.open(_file_of(folder, ticket), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.utime(handle, (now_s, now_s))
    finally:
        os.close(handle)
    return ticket


def redeem_ticket(folder: Path, ticket: str, clock: Clock) -> bool:
    """Use up the ticket; return whether it was issued here within the last hour and is used for the first time.

    Raises: NotTrusted if somebody else could have put a ticket there; OSError if the folder cannot be used.
    """
    if _TICKET.fullmatch(ticket) is None:
        return False
    require_trusted_folder(folder)
    file = _file_of(folder, ticket)
    try:
        issued_at_s = file.lstat().st_mtime
        file.unlink()
    except FileNotFoundError:
        return False
    # In both directions: the wall clock may have been set back.
    return abs(clock.unix_s() - issued_at_s) < LIFETIME_S


def _file_of(folder: Path, ticket: str) -> Path:
    return folder / hashlib.sha256(ticket.encode()).hexdigest()
