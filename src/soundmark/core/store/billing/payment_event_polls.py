"""The table `payment_event_polls`."""

from datetime import datetime
from typing import cast

from soundmark.core.domain.billing.catalog import ProviderName
from soundmark.kit.postgres.transaction import Tx


async def find_polled_until(tx: Tx, provider: ProviderName) -> datetime | None:
    """Return until when the provider's list of events was read."""
    return cast(
        "datetime | None",
        await tx.value(
            "SELECT polled_until FROM payment_event_polls WHERE provider = %(provider)s", {"provider": provider}
        ),
    )


async def insert_or_update(tx: Tx, provider: ProviderName, *, polled_until: datetime) -> None:
    """Note until when the provider's list of events was read; an earlier time is not taken."""
    await tx.run(
        """
        INSERT INTO payment_event_polls AS p (provider, polled_until)
        VALUES (%(provider)s, %(polled_until)s)
            ON CONFLICT ON CONSTRAINT payment_event_polls_pkey DO UPDATE
           SET polled_until = greatest(p.polled_until, excluded.polled_until)
        """,
        {"provider": provider, "polled_until": polled_until},
    )
