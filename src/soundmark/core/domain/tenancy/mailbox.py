"""E-mail addresses of people."""

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Final
from unicodedata import normalize

from soundmark.kit.text.validation import parse_email

_ASCII_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A valid address.

    `address` keeps the spelling, but composed (NFC) and with its domain in lower-case Unicode. `ascii_address` is the
    form for a server without SMTPUTF8; None if the part before the @ is not ASCII (RFC 6531).
    """

    address: str
    ascii_address: str | None
    key: tuple[str, str]

    def is_same(self, other: "Mailbox") -> bool:
        """Return whether both are the same address. Only ASCII letters may differ, in their case.

        Each mail server decides which other letters are the same. A guess of ours could let in the owner of another
        mailbox.

        Source: contract, section 3.
        """
        return self.key == other.key


def read_mailbox(text: str) -> Mailbox | None:
    """Parse an e-mail address; return None if `text` is not one."""
    try:
        found = parse_email(text)
    except ValueError:
        return None
    # Domains are compared in their DNS form: `xn--…` and its Unicode form are one, `straße` and `strasse` are two.
    local, ascii_domain = _compose(text.rpartition("@")[0]), found.ascii_domain.lower()
    ascii_address = f"{local}@{found.ascii_domain}" if local.isascii() else None
    return Mailbox(f"{local}@{found.domain}", ascii_address, (local.translate(_ASCII_SMALL), ascii_domain))


def _compose(local: str) -> str:
    """Return the part before the @ composed, unless that would replace one letter by another.

    NFC joins a letter and its accent into one character. It also replaces some characters by others that look alike,
    such as the Kelvin sign by the letter K, which would be another mailbox.
    """
    for character in local:
        if len(composed := normalize("NFC", character)) == 1 and composed != character:
            return local
    return normalize("NFC", local)
