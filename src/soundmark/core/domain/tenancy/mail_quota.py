"""The number of mails that may be sent in our name."""

from typing import Final

# Contract, section 2: per UTC day.
MAILS_TO_ADDRESS_MAX: Final = 5
MAILS_OF_ORGANIZATION_MAX: Final = 100
