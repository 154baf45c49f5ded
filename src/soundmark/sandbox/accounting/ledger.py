"""The state of the accounting system: third parties and draft invoices, with its rounding."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from soundmark.kit.clock import Clock
from soundmark.sandbox.shelf import Shelf

UNIT_DECIMALS: Final = 5  # MAIN_MAX_DECIMALS_UNIT.
_SHOWN_DECIMALS: Final = 8  # The columns of the real database.


@dataclass(slots=True)
class AccountingChoices:
    """What a person or a test may choose.

    `decimals` are those of totals (MAIN_MAX_DECIMALS_TOT): 2 as installed, 3 where invoices are in dinars. A restricted
    user lacks the right "Read all third parties (and their objects) by internal users", and represents none of them.
    """

    decimals: int = 2
    is_module_on: bool = True
    is_user_restricted: bool = False


@dataclass(frozen=True, slots=True)
class ThirdParty:
    """A customer in the books."""

    id: int
    entity: int
    name: str
    is_active: bool = True


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """A line; `unit_price` is without tax."""

    description: str
    quantity: Decimal
    unit_price: Decimal
    tax_rate: Decimal
    product_type: int
    starts_at: Any
    ends_at: Any
    total_without_tax: Decimal
    total_with_tax: Decimal


@dataclass(frozen=True, slots=True)
class DraftInvoice:
    """A draft, which is never validated here."""

    id: int
    entity: int
    third_party_id: int
    type: int
    date: int
    ref_ext: str | None
    ref_client: str | None
    lines: Sequence[InvoiceLine]
    created_at: datetime

    @property
    def total_without_tax(self) -> Decimal:
        """The sum of the lines."""
        return sum((line.total_without_tax for line in self.lines), Decimal(0))

    @property
    def total_with_tax(self) -> Decimal:
        """The sum of the lines."""
        return sum((line.total_with_tax for line in self.lines), Decimal(0))


class Ledger:
    """Everything that the accounting system remembers."""

    def __init__(self, clock: Clock, entity: int) -> None:
        self._clock: Final = clock
        self._entity: Final = entity
        self.choices = AccountingChoices()
        self.third_parties: Final[Shelf[ThirdParty]] = Shelf()
        self.invoices: Final[Shelf[DraftInvoice]] = Shelf()
        self._invoices_count = 0
        self._third_parties_count = 0
        self._seed()

    def add_third_party(self, name: str, entity: int | None = None) -> ThirdParty:
        """Add a third party of an entity."""
        self._third_parties_count += 1
        party = ThirdParty(self._third_parties_count, entity or self._entity, name)
        return self.third_parties.add(str(party.id), party)

    def add_line(self, fields: dict[str, Any]) -> InvoiceLine:
        """Return a line with its totals, rounded as the accounting system does.

        Raises: decimal.InvalidOperation.
        """
        quantity = Decimal(str(fields.get("qty", 1)))
        unit_price = self._round(Decimal(str(fields.get("subprice", 0))), UNIT_DECIMALS)
        tax_rate = Decimal(str(fields.get("tva_tx", 0)))
        return InvoiceLine(
            description=str(fields.get("desc", "")),
            quantity=quantity,
            unit_price=unit_price,
            tax_rate=tax_rate,
            product_type=int(fields.get("product_type", 0)),
            starts_at=fields.get("date_start", ""),
            ends_at=fields.get("date_end", ""),
            total_without_tax=self._round(unit_price * quantity, self.choices.decimals),
            total_with_tax=self._round(unit_price * quantity * (1 + tax_rate / 100), self.choices.decimals),
        )

    def add_invoice(
        self, entity: int, third_party_id: int, fields: dict[str, Any], lines: Sequence[InvoiceLine]
    ) -> DraftInvoice:
        """Add a draft; nothing keeps two from having the same `ref_ext`."""
        self._invoices_count += 1
        now = self._clock.now()
        invoice = DraftInvoice(
            id=self._invoices_count,
            entity=entity,
            third_party_id=third_party_id,
            type=int(fields.get("type", 0)),
            date=_read_date(fields.get("date"), now),
            ref_ext=fields.get("ref_ext"),
            ref_client=fields.get("ref_client"),
            lines=tuple(lines),
            created_at=now,
        )
        return self.invoices.add(str(invoice.id), invoice)

    def clear(self) -> None:
        """Forget everything but the seeded third parties."""
        self.third_parties.clear()
        self.invoices.clear()
        self.choices = AccountingChoices()
        self._invoices_count = self._third_parties_count = 0
        self._seed()

    def _seed(self) -> None:
        for name in ("Radio Carthage", "Musée du Bardo", "Boutique Sidi Bou Saïd"):
            self.add_third_party(name)

    @staticmethod
    def _round(value: Decimal, decimals: int) -> Decimal:
        return value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)


def text_of(value: Decimal) -> str:
    """Return an amount as the API writes it: text with eight decimals."""
    return f"{value:.{_SHOWN_DECIMALS}f}"


def _read_date(value: Any, now: datetime) -> int:
    if isinstance(value, str) and not value.isdecimal():
        return int(datetime.fromisoformat(value).replace(tzinfo=now.tzinfo).timestamp())
    return int(value) if value else int(now.timestamp())
