"""Tests of the systems that the platform settings configure, and what a test found."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

# Not the local provider: it documents no call without effects, and what it answers a wrong key is unknown.
SystemName = Literal["mail", "desk", "accounting", "card"]
SystemTestCode = Literal[
    "answered",
    "mail_accepted",
    "sender_mail_accepted",
    "not_configured",
    "credential_unreadable",
    "credential_unusable",
    "key_refused",
    "login_refused",
    "not_permitted",
    "mailbox_unknown",
    "sender_refused",
    "recipient_refused",
    "unreachable",
    "address_refused",
    "late",
    "limited",
    "failing",
    "unexpected",
]

_PASSED: Final[frozenset[SystemTestCode]] = frozenset({"answered", "mail_accepted", "sender_mail_accepted"})

_NAMES: Final[Mapping[SystemName, str]] = {
    "mail": "The mail server",
    "desk": "The support desk",
    "accounting": "The accounting system",
    "card": "The card provider",
}
# One sentence or two, without anything that the other system wrote.
_REASONS: Final[Mapping[SystemTestCode, str]] = {
    "answered": "{system} accepted the key and answered as expected.",
    "mail_accepted": "{system} accepted a test mail to your address. Check that it arrives.",
    "sender_mail_accepted": "{system} accepted a test mail to the sender's address, because you have none here. "
    "Check that it arrives.",
    "not_configured": "{system} is not configured: settings are missing.",
    "credential_unreadable": "A stored credential cannot be opened with this master key. Set it again.",
    "credential_unusable": "The stored key has a character that no request can carry. Set it again.",
    "key_refused": "{system} refused the key.",
    "login_refused": "{system} refused the user name or password.",
    "not_permitted": "{system} knows the key, but the key lacks a right that Soundmark needs.",
    "mailbox_unknown": "{system} accepted the key, but has no mailbox with the configured number.",
    "sender_refused": "{system} refused the sender's address or the session.",
    "recipient_refused": "{system} refused the test mail or its recipient.",
    "unreachable": "{system} could not be reached. Check the address, the port, the network and the certificate.",
    "address_refused": "The configured name leads to an address that Soundmark never calls.",
    "late": "{system} did not answer in time.",
    "limited": "{system} limits requests at the moment. Try again later.",
    "failing": "{system} reported an error of its own. Try again later.",
    "unexpected": "{system} did not answer as expected. Check the address and the port.",
}


@dataclass(frozen=True, slots=True)
class SystemTest:
    """What a test of a system found."""

    system: SystemName
    code: SystemTestCode
    checked_at: datetime

    @property
    def is_passed(self) -> bool:
        """Whether the system works with the settings."""
        return self.code in _PASSED

    @property
    def reason(self) -> str:
        """What the test found, in words for people."""
        return _REASONS[self.code].format(system=_NAMES[self.system])
