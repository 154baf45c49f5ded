"""The accounting system from the platform settings."""

from dataclasses import dataclass
from decimal import Decimal

from soundmark.kit.crypto.secret import Secret
from soundmark.settings.registry import AccountingSettings


@dataclass(frozen=True, slots=True)
class AccountingServer:
    """The accounting system's address and our credential. Without `entity_id`, the credential's own entity is used."""

    url: str
    api_key: Secret
    entity_id: int | None


def find_accounting_server(settings: AccountingSettings) -> AccountingServer | None:
    """Return the accounting system; None if its URL or its key is not configured."""
    if settings.accounting_base_url is None or settings.accounting_api_key is None:
        return None
    return AccountingServer(
        f"{settings.accounting_base_url}/api/index.php", settings.accounting_api_key, settings.accounting_entity_id
    )


def find_tax_percent(settings: AccountingSettings) -> Decimal | None:
    """Return the rate of tax of the invoices; None if it is not configured."""
    if settings.accounting_tva_rate is None:
        return None
    # The setting has at most two decimals. So the shortest text of its float is what the operator wrote.
    return Decimal(str(settings.accounting_tva_rate))
