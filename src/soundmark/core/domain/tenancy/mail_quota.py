"""How many mails may go out in our name."""

from typing import Final

# Contract, section 2: in one UTC day.
MAILS_TO_ADDRESS_MAX: Final = 5
MAILS_OF_ORGANIZATION_MAX: Final = 100
