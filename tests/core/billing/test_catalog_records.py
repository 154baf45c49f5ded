"""The records of the catalogue."""

from datetime import UTC, datetime

from soundmark.core.domain.billing.catalog import CardPriceSource, Offer, OfferTerms
from soundmark.core.features.billing.catalog.wire import PutCardOffer

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def test_no_record_prints_the_reference_of_a_price() -> None:
    """It would reach the log with any message that holds the record."""
    price = "price_1PlantedMarker"
    records = [
        OfferTerms("plan_1", "card", active=True, price_reference=price),
        Offer("offer_1", "plan_1", "card", True, price, None, None, None, None, None, None, NOW, "known"),
        CardPriceSource("offer_1", price),
        PutCardOffer(plan_id="plan_1", provider="card", active=True, price_reference=price),
    ]
    for record in records:
        assert price not in repr(record)
        assert "_1" in repr(record), "the ids are shown"
