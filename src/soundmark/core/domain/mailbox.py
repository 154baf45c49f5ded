"""E-mail addresses of people."""

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Final
from unicodedata import normalize

from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

# The library would refuse names that no public mail server knows. Whoever runs Soundmark in a house of its own has mail
# there at `….local` or `….test`, and an identity provider that verified it.
SPECIAL_USE_DOMAIN_NAMES.clear()


_ASCII_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A valid address.

    `address` is as it was written, but composed (NFC) and with its domain in small Unicode letters. `ascii_address` is
    what a server understands that knows ASCII only, None where the part before the @ is not ASCII (RFC 6531).
    """

    address: str
    ascii_address: str | None
    key: tuple[str, str]

    def is_same(self, other: "Mailbox") -> bool:
        """Return whether both are one address: letters of ASCII that differ in case are the same, others are not.

        Which other letters a mail server takes for the same is its own matter, so one of us that guessed could let
        somebody in who has another mailbox.

        Source: contract, section 3.
        """
        return self.key == other.key


def read_mailbox(text: str) -> Mailbox | None:
    """The address that `text` is; None where it is none that mail could reach.

    Whether the domain exists is not asked: that would be a question to somebody else's server, and an answer of today.
    """
    try:
        found = validate_email(text, check_deliverability=False, globally_deliverable=False, strict=True)
    except EmailNotValidError:
        return None
    # The domain is compared as the DNS knows it: `xn--…` and what it stands for are one, `straße` and `strasse` two.
    local, ascii_domain = _composed(text.rpartition("@")[0]), found.ascii_domain.lower()
    ascii_address = f"{local}@{found.ascii_domain}" if local.isascii() else None
    return Mailbox(f"{local}@{found.domain}", ascii_address, (local.translate(_ASCII_SMALL), ascii_domain))


def _composed(local: str) -> str:
    """Return the part before the @ composed, unless that would make another letter of one.

    NFC writes a letter with its accent as one character, and some characters as others that look like them: the Kelvin
    sign as the letter K, which is another mailbox.
    """
    for character in local:
        if len(composed := normalize("NFC", character)) == 1 and composed != character:
            return local
    return normalize("NFC", local)
