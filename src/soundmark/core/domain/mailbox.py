"""E-mail addresses of people."""

import unicodedata
from dataclasses import dataclass

from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

# The library would refuse names that no public mail server knows. Whoever runs Soundmark in a house of its own has mail
# there at `….local` or `….test`, and an identity provider that verified it.
SPECIAL_USE_DOMAIN_NAMES.clear()


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
        """Whether both are one person's: letters that differ in case, or in how they are composed, are the same."""
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
    assert found.local_part is not None, "the library sets it"
    return Mailbox(found.normalized, found.ascii_email, (_caseless(found.local_part), found.ascii_domain.lower()))


def _caseless(text: str) -> str:
    # Unicode, section 3.13, D145: folding may take composed letters apart in another order. Compatibility forms stay
    # different (no NFKC): they are other letters to a mail server.
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
