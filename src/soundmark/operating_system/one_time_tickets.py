"""Tickets that each open one thing once, for any process that shares a folder with the process that issues them.

A ticket is a file, named by the ticket's SHA-256, so that a listing of the folder shows no ticket. Redeeming it removes
the file, which the kernel does for one process only.
"""

import contextlib
import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Final

from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.text.ids import mint_secret
from soundmark.operating_system.files import require_trusted_folder
from soundmark.operating_system.os_user import OsUser

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


def issue_ticket(folder: Path, entropy: Entropy) -> str:
    """Return a new ticket: 43 characters with 256 random bits.

    Raises: OSError if there is no folder, or it cannot be written to.
    """
    ticket = mint_secret(entropy, "")
    os.close(os.open(_file_of(folder, ticket), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return ticket


def redeem_ticket(folder: Path, ticket: str) -> bool:
    """Use up the ticket; return whether it was issued here and is used for the first time.

    Raises: NotTrusted if somebody else could have put a ticket there; OSError if the folder cannot be used.
    """
    if _TICKET.fullmatch(ticket) is None:
        return False
    require_trusted_folder(folder)
    try:
        _file_of(folder, ticket).unlink()
    except FileNotFoundError:
        return False
    return True


def _file_of(folder: Path, ticket: str) -> Path:
    return folder / hashlib.sha256(ticket.encode()).hexdigest()
