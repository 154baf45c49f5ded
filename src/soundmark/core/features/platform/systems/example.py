"""The example of a mail server that refuses the login."""

from typing import Final

from soundmark.core.domain.platform.system_test import SystemTest
from soundmark.core.edge.examples import ISSUED_AT

REFUSED: Final = SystemTest("mail", "login_refused", ISSUED_AT)
