"""The limit on mails in our name, counted across all processes."""

import hmac
from datetime import datetime
from typing import Final

from soundmark.core.domain.tenancy.mailbox import Mailbox
from soundmark.core.store.tenancy import mail_counts
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.postgres.transaction import Tx

# Contract, section 2: per UTC day.
MAILS_TO_ADDRESS_MAX: Final = 5
MAILS_OF_ORGANIZATION_MAX: Final = 100


async def take_mail(tx: Tx, sealer: Sealer, *, organization_id: str, mailbox: Mailbox, now: datetime) -> bool:
    """Count one mail of the organisation to the address; return False, and count nothing, if a limit is reached.

    Both counts are locked until the transaction ends, so concurrent mails cannot exceed a limit. A mail stays counted
    whether it arrives or not.

    Source: contract, section 2, Mail in our name.
    """
    key = sealer.derive("mail counts")
    of_organization = _digest(key, "organization", organization_id)
    to_address = _digest(key, "address", *mailbox.key)
    day, counted = now.date(), (of_organization, to_address)
    found = await mail_counts.lock(tx, day=day, counted=counted)
    if found[of_organization] >= MAILS_OF_ORGANIZATION_MAX or found[to_address] >= MAILS_TO_ADDRESS_MAX:
        return False
    await mail_counts.update(tx, day=day, counted=counted)
    return True


def _digest(key: bytes, *parts: str) -> bytes:
    return hmac.digest(key, "\0".join(parts).encode(), "sha256")
