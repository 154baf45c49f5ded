"""The table `offers`, which does not belong to a tenant. No offer is ever deleted."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

from soundmark.core.domain.billing.catalog import CardPriceSource, ListedOffer, Offer, OfferTerms, PriceFacts
from soundmark.core.domain.billing.checkout import Purchase
from soundmark.kit.postgres.transaction import Tx

_COLUMNS: Final[LiteralString] = """
    id, plan_id, provider, active, price_reference, country, currency, amount_minor, price_interval, entitlement_months,
    price_read_at, updated_at, price_status
"""
_SELECT: Final[LiteralString] = "SELECT " + _COLUMNS + " FROM offers "


@dataclass(frozen=True, slots=True)
class _PricedPlan:
    price_reference: str
    plan_id: str


async def list_all(tx: Tx) -> list[Offer]:
    """List every offer by id, active or not."""
    return await tx.all(Offer, _SELECT + "ORDER BY id")


async def list_for_sale(tx: Tx, *, country: str | None) -> list[ListedOffer]:
    """List the active offers of active plans of enabled providers by id, unless they are of another country.

    Those of the card provider must have a price that it knows.
    """
    return await tx.all(
        ListedOffer,
        """
        SELECT o.id, o.plan_id, p.name AS plan_name, p.product,
               coalesce(p.monthly_code_quota, p.monthly_event_quota) AS monthly_quota, o.provider, o.country,
               o.currency, o.amount_minor, o.price_interval, o.entitlement_months
          FROM offers o
          JOIN plans p ON p.id = o.plan_id
          JOIN payment_providers v ON v.name = o.provider
         WHERE o.active
           AND p.active
           AND v.enabled
           AND (o.provider <> 'card' OR o.price_status = 'known')
           AND (%(country)s::text IS NULL OR o.country IS NULL OR o.country = %(country)s)
         ORDER BY o.id
        """,
        {"country": country},
    )


async def find_purchase(tx: Tx, offer_id: str) -> Purchase | None:
    """Return what an offer sells; None unless it is an active offer of an active plan of an enabled provider.

    The card provider must know its price.
    """
    return await tx.one_or_none(
        Purchase,
        """
        SELECT o.id AS offer_id, o.plan_id, p.product, o.provider, o.price_reference,
               CASE o.provider WHEN 'local' THEN o.amount_minor END AS amount_minor,
               CASE o.provider WHEN 'local' THEN o.currency END AS currency,
               o.entitlement_months
          FROM offers o
          JOIN plans p ON p.id = o.plan_id
          JOIN payment_providers v ON v.name = o.provider
         WHERE o.id = %(offer_id)s
           AND o.active
           AND p.active
           AND v.enabled
           AND (o.provider <> 'card' OR o.price_status = 'known')
        """,
        {"offer_id": offer_id},
    )


async def find(tx: Tx, offer_id: str) -> Offer | None:
    """Return an offer."""
    return await tx.one_or_none(Offer, _SELECT + "WHERE id = %(offer_id)s", {"offer_id": offer_id})


async def lock(tx: Tx, offer_id: str) -> Offer | None:
    """Return an offer, and keep it from changing until the transaction ends. Lock order: docs/locks.md."""
    return await tx.one_or_none(Offer, _SELECT + "WHERE id = %(offer_id)s FOR NO KEY UPDATE", {"offer_id": offer_id})


async def insert(tx: Tx, offer_id: str, terms: OfferTerms, price: PriceFacts, *, now: datetime) -> Offer | None:
    """Insert an offer; return None if there is one with this id, also if it was inserted while this waited for it."""
    return await tx.one_or_none(
        Offer,
        """
        INSERT INTO offers
               (id, plan_id, provider, active, price_reference, country, currency, amount_minor, price_interval,
                entitlement_months, price_read_at, updated_at, price_status)
        VALUES (%(offer_id)s, %(plan_id)s, %(provider)s, %(active)s, %(price_reference)s, %(country)s, %(currency)s,
                %(amount_minor)s, %(interval)s, %(entitlement_months)s, %(read_at)s, %(now)s, %(status)s)
            ON CONFLICT DO NOTHING
        RETURNING """
        + _COLUMNS,
        {**_make_params(offer_id, terms, price), "now": now},
    )


async def update(tx: Tx, offer_id: str, terms: OfferTerms, price: PriceFacts, *, now: datetime) -> Offer:
    """Change a locked offer, whose plan and provider are those of the terms."""
    offer = await tx.one_or_none(
        Offer,
        """
        UPDATE offers
           SET active = %(active)s,
               price_reference = %(price_reference)s,
               country = %(country)s,
               currency = %(currency)s,
               amount_minor = %(amount_minor)s,
               price_interval = %(interval)s,
               entitlement_months = %(entitlement_months)s,
               price_read_at = %(read_at)s,
               price_status = %(status)s,
               updated_at = %(now)s
         WHERE id = %(offer_id)s
        RETURNING """
        + _COLUMNS,
        {**_make_params(offer_id, terms, price), "now": now},
    )
    assert offer is not None, "a locked offer exists"
    return offer


async def find_plan_ids(tx: Tx, price_references: Sequence[str]) -> dict[str, str]:
    """Return, by price, the plan that a card offer with it sells or sold; an active offer comes first."""
    found = await tx.all(
        _PricedPlan,
        """
        SELECT DISTINCT ON (price_reference) price_reference, plan_id
          FROM offers
         WHERE price_reference = ANY(%(price_references)s)
           AND provider = 'card'
         ORDER BY price_reference, active DESC, id
        """,
        {"price_references": list(price_references)},
    )
    return {each.price_reference: each.plan_id for each in found}


async def list_price_sources(tx: Tx, *, before: datetime) -> list[CardPriceSource]:
    """List the prices of active card offers that were last read before a time, or never."""
    return await tx.all(
        CardPriceSource,
        """
        SELECT id AS offer_id, price_reference
          FROM offers
         WHERE active
           AND price_reference IS NOT NULL
           AND (price_read_at IS NULL OR price_read_at < %(before)s)
         ORDER BY price_read_at NULLS FIRST, id
        """,
        {"before": before},
    )


async def update_price(tx: Tx, source: CardPriceSource, price: PriceFacts) -> bool:
    """Store what the provider says of an offer's price; return False if the offer has another price by now.

    Of a price that is missing, what was known stays. Of two reads, the one that began later counts. Lock order:
    docs/locks.md.
    """
    updated = await tx.run(
        """
        UPDATE offers
           SET currency = CASE %(status)s WHEN 'known' THEN %(currency)s ELSE currency END,
               amount_minor = CASE %(status)s WHEN 'known' THEN %(amount_minor)s ELSE amount_minor END,
               price_interval = CASE %(status)s WHEN 'known' THEN %(interval)s ELSE price_interval END,
               price_status = %(status)s,
               price_read_at = %(read_at)s
         WHERE id = %(offer_id)s
           AND price_reference = %(price_reference)s
           AND (price_read_at IS NULL OR price_read_at <= %(read_at)s)
        """,
        {**asdict(price), "offer_id": source.offer_id, "price_reference": source.price_reference},
    )
    return updated == 1


def _make_params(offer_id: str, terms: OfferTerms, price: PriceFacts) -> dict[str, Any]:
    return {"offer_id": offer_id, **asdict(terms), **asdict(price)}
