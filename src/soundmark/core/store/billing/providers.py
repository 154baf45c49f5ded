"""The table `payment_providers`, which does not belong to a tenant."""

from datetime import datetime

from soundmark.core.domain.billing.catalog import PaymentProvider, ProviderName
from soundmark.kit.postgres.transaction import Tx


async def list_all(tx: Tx) -> list[PaymentProvider]:
    """List both payment providers."""
    return await tx.all(PaymentProvider, "SELECT name, enabled, updated_at FROM payment_providers ORDER BY name")


async def update_enabled(tx: Tx, name: ProviderName, *, enabled: bool, now: datetime) -> PaymentProvider:
    """Put a provider's offers on sale, or take them off. Lock order: docs/locks.md."""
    provider = await tx.one_or_none(
        PaymentProvider,
        """
        UPDATE payment_providers
           SET enabled = %(enabled)s,
               updated_at = %(now)s
         WHERE name = %(name)s
        RETURNING name, enabled, updated_at
        """,
        {"name": name, "enabled": enabled, "now": now},
    )
    assert provider is not None, "the first revision made both providers"
    return provider
