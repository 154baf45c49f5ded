"""Offers for sale, and subscriptions, written straight into the database."""

from typing import Any

from support.database.rival import Rival

CARD_OFFER = "offer_codes_monthly"
LOCAL_OFFER = "offer_codes_prepaid"
PRICE = "price_MARKmonthly"
AMOUNT_MINOR = 29_500


async def make_plan(rival: Rival, plan_id: str = "plan_codes_studio", *, product: str = "codes") -> str:
    """Make an active plan of 1,000 Codes or events a month."""
    quota = "monthly_code_quota" if product == "codes" else "monthly_event_quota"
    await rival.run(
        f"INSERT INTO plans (id, name, product, {quota}, active, updated_at)"
        " VALUES (%s, 'Studio', %s, 1000, true, now()) ON CONFLICT DO NOTHING",
        plan_id,
        product,
    )
    return plan_id


async def make_card_offer(rival: Rival, offer_id: str = CARD_OFFER, *, product: str = "codes") -> str:
    """Sell a plan through the card provider."""
    plan_id = await make_plan(rival, f"plan_{product}_studio", product=product)
    await rival.run("UPDATE payment_providers SET enabled = true WHERE name = 'card'")
    await rival.run(
        "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_status, updated_at)"
        " VALUES (%s, %s, 'card', true, %s, 'known', now()) ON CONFLICT DO NOTHING",
        offer_id,
        plan_id,
        PRICE,
    )
    return offer_id


async def make_local_offer(rival: Rival, offer_id: str = LOCAL_OFFER) -> str:
    """Sell a plan through the local provider."""
    plan_id = await make_plan(rival)
    await rival.run("UPDATE payment_providers SET enabled = true WHERE name = 'local'")
    await rival.run(
        "INSERT INTO offers (id, plan_id, provider, active, country, currency, amount_minor, entitlement_months,"
        " updated_at) VALUES (%s, %s, 'local', true, 'TN', 'TND', %s, 12, now()) ON CONFLICT DO NOTHING",
        offer_id,
        plan_id,
        AMOUNT_MINOR,
    )
    return offer_id


async def make_card_subscription(rival: Rival, organization_id: str, **changes: Any) -> None:
    """Give an organisation an active card subscription of Codes, except for `changes`."""
    plan_id = await make_plan(rival)
    row = {
        "organization_id": organization_id,
        "id": "bsu_" + "s" * 22,
        "plan_id": plan_id,
        "product": "codes",
        "provider": "card",
        "status": "active",
        "cancel_at_period_end": False,
        "provider_reference": "sub_MARK",
        **changes,
    }
    columns = ", ".join(row)
    values = ", ".join(["%s"] * len(row))
    await rival.run(
        # Core's own times have milliseconds, and so do the cursors of its lists.
        f"INSERT INTO subscriptions ({columns}, created_at, updated_at)"
        f" VALUES ({values}, date_trunc('milliseconds', now()), now())",
        *row.values(),
    )
