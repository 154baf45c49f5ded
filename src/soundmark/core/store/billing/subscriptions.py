"""The table `subscriptions`."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, LiteralString

from soundmark.core.domain.billing.catalog import Product
from soundmark.core.domain.billing.subscription import ListedSubscription, LiveQuota, Subscription
from soundmark.kit.postgres.paging import page_params
from soundmark.kit.postgres.transaction import AnyTx, Tx
from soundmark.kit.text.paging import Position
from soundmark.wire.shape import EntitledMode

_LOCK: Final = 6  # Kind of advisory lock: docs/locks.md.
_SELECT: Final[LiteralString] = """
    SELECT organization_id, id, plan_id, product, audience_mode, provider, status, current_period_end, paid_through,
           cancel_at_period_end, monthly_quota, checkout_id, provider_reference, contract_reference, last_event_at,
           created_at, updated_at, paid_period_end, paid_invoice_at, is_price_known
      FROM subscriptions
"""


@dataclass(frozen=True, slots=True)
class SubscriptionPlace:
    """Where a subscription is."""

    organization_id: str
    id: str


@dataclass(frozen=True, slots=True)
class PlanHolder:
    """An organisation with a subscription of a plan."""

    organization_id: str


async def lock_all(tx: Tx, organization_id: str) -> None:
    """Keep everybody else from changing the subscriptions of an organisation until the transaction ends.

    Read them in a later statement. Lock order: docs/locks.md.
    """
    await tx.run(
        "SELECT pg_advisory_xact_lock(%(kind)s, hashtext(%(organization_id)s))",
        {"kind": _LOCK, "organization_id": organization_id},
    )


async def insert(tx: Tx, subscription: Subscription) -> None:
    """Insert a subscription."""
    await tx.run(
        """
        INSERT INTO subscriptions
               (organization_id, id, plan_id, product, audience_mode, provider, status, current_period_end,
                paid_through, cancel_at_period_end, monthly_quota, checkout_id, provider_reference, contract_reference,
                last_event_at, created_at, updated_at, paid_period_end, paid_invoice_at, is_price_known)
        VALUES (%(organization_id)s, %(id)s, %(plan_id)s, %(product)s, %(audience_mode)s, %(provider)s, %(status)s,
                %(current_period_end)s, %(paid_through)s, %(cancel_at_period_end)s, %(monthly_quota)s, %(checkout_id)s,
                %(provider_reference)s, %(contract_reference)s, %(last_event_at)s, %(created_at)s, %(updated_at)s,
                %(paid_period_end)s, %(paid_invoice_at)s, %(is_price_known)s)
        """,
        asdict(subscription),
    )


async def update(tx: Tx, subscription: Subscription) -> None:
    """Store what has changed of a subscription."""
    updated = await tx.run(
        """
        UPDATE subscriptions
           SET plan_id = %(plan_id)s,
               product = %(product)s,
               audience_mode = %(audience_mode)s,
               status = %(status)s,
               current_period_end = %(current_period_end)s,
               paid_through = %(paid_through)s,
               paid_period_end = %(paid_period_end)s,
               paid_invoice_at = %(paid_invoice_at)s,
               is_price_known = %(is_price_known)s,
               cancel_at_period_end = %(cancel_at_period_end)s,
               monthly_quota = %(monthly_quota)s,
               last_event_at = %(last_event_at)s,
               updated_at = %(updated_at)s
         WHERE organization_id = %(organization_id)s
           AND id = %(id)s
        """,
        asdict(subscription),
    )
    assert updated == 1, "a subscription stays until its organisation is deleted"


async def update_contract_cancelled(
    tx: Tx, organization_id: str, mode: EntitledMode, *, but_id: str, now: datetime
) -> str | None:
    """Cancel the organisation's active contract of a mode, unless it is `but_id`; return its id."""
    cancelled_id: str | None = await tx.value(
        """
        UPDATE subscriptions
           SET status = 'cancelled',
               updated_at = %(now)s
         WHERE organization_id = %(organization_id)s
           AND audience_mode = %(mode)s
           AND provider = 'contract'
           AND status = 'active'
           AND id <> %(but_id)s
        RETURNING id
        """,
        {"organization_id": organization_id, "mode": mode, "but_id": but_id, "now": now},
    )
    return cancelled_id


async def find(tx: Tx, organization_id: str, subscription_id: str) -> Subscription | None:
    """Return a subscription of the organisation."""
    return await tx.one_or_none(
        Subscription,
        _SELECT + "WHERE organization_id = %(organization_id)s AND id = %(subscription_id)s",
        {"organization_id": organization_id, "subscription_id": subscription_id},
    )


async def find_by_reference(tx: Tx, organization_id: str, provider_reference: str) -> Subscription | None:
    """Return the organisation's subscription that the card provider knows by this reference."""
    return await tx.one_or_none(
        Subscription,
        _SELECT + "WHERE organization_id = %(organization_id)s AND provider_reference = %(provider_reference)s",
        {"organization_id": organization_id, "provider_reference": provider_reference},
    )


async def find_contract(tx: Tx, organization_id: str, contract_reference: str) -> Subscription | None:
    """Return the organisation's contract with this reference, whatever its status."""
    return await tx.one_or_none(
        Subscription,
        _SELECT + "WHERE organization_id = %(organization_id)s AND contract_reference = %(contract_reference)s",
        {"organization_id": organization_id, "contract_reference": contract_reference},
    )


async def find_prepaid(tx: Tx, organization_id: str, plan_id: str) -> Subscription | None:
    """Return the organisation's active prepaid subscription of a plan. Its period may be over."""
    return await tx.one_or_none(
        Subscription,
        _SELECT
        + """
         WHERE organization_id = %(organization_id)s
           AND plan_id = %(plan_id)s
           AND provider = 'local'
           AND status = 'active'
        """,
        {"organization_id": organization_id, "plan_id": plan_id},
    )


async def has_unending_card(tx: Tx, organization_id: str, product: Product) -> bool:
    """Return whether the organisation has a card subscription of the product that is live and renews itself."""
    is_there: bool = await tx.value(
        """
        SELECT EXISTS (
            SELECT
              FROM subscriptions
             WHERE organization_id = %(organization_id)s
               AND product = %(product)s
               AND provider = 'card'
               AND status IN ('trialing', 'active', 'past_due')
               AND NOT cancel_at_period_end
        )
        """,
        {"organization_id": organization_id, "product": product},
    )
    return is_there


async def list_unending_card_ids(tx: Tx, organization_id: str, *, limit: int) -> list[str]:
    """Return the ids of up to `limit` card subscriptions that are live and renew themselves, oldest first."""
    ids: list[str] = await tx.value(
        """
        SELECT coalesce(array_agg(unending.id), '{}')
          FROM (SELECT id
                  FROM subscriptions
                 WHERE organization_id = %(organization_id)s
                   AND provider = 'card'
                   AND status IN ('trialing', 'active', 'past_due')
                   AND NOT cancel_at_period_end
                 ORDER BY created_at, id
                 LIMIT %(limit)s) AS unending
        """,
        {"organization_id": organization_id, "limit": limit},
    )
    return ids


async def list_live_quotas(tx: AnyTx, organization_id: str, mode: EntitledMode | None) -> list[LiveQuota]:
    """Return the quotas of the organisation's subscriptions that are live: of a mode, or with None, of Codes."""
    return await tx.all(
        LiveQuota,
        """
        SELECT s.provider, s.paid_through,
               coalesce(s.monthly_quota, p.monthly_code_quota, p.monthly_event_quota) AS monthly_quota,
               s.is_price_known
          FROM subscriptions s
          JOIN plans p ON p.id = s.plan_id
         WHERE s.organization_id = %(organization_id)s
           AND s.audience_mode IS NOT DISTINCT FROM %(mode)s::text
           AND s.status IN ('trialing', 'active', 'past_due')
        """,
        {"organization_id": organization_id, "mode": mode},
    )


async def hold_plans(tx: Tx, organization_id: str, mode: EntitledMode) -> None:
    """Keep the plans of the organisation's live subscriptions of a mode from changing until the transaction ends.

    A plan that changes afterwards finds these subscriptions. Lock order: docs/locks.md.
    """
    await tx.run(
        """
        SELECT 1
          FROM plans
         WHERE id IN (SELECT plan_id
                        FROM subscriptions
                       WHERE organization_id = %(organization_id)s
                         AND audience_mode = %(mode)s
                         AND status IN ('trialing', 'active', 'past_due'))
         ORDER BY id
           FOR SHARE
        """,
        {"organization_id": organization_id, "mode": mode},
    )


async def list_newest_first(
    tx: Tx, organization_id: str, *, before: Position | None, limit: int
) -> list[ListedSubscription]:
    """Return up to `limit` subscriptions of the organisation, newest first."""
    return await tx.all(
        ListedSubscription,
        """
        SELECT s.id, s.plan_id, p.name AS plan_name, s.product, s.provider, s.status, s.current_period_end,
               s.paid_through, s.cancel_at_period_end, s.created_at
          FROM subscriptions s
          JOIN plans p ON p.id = s.plan_id
         WHERE s.organization_id = %(organization_id)s
           AND (s.created_at, s.id) < (%(before_at)s::timestamptz, %(before_id)s::text)
         ORDER BY s.created_at DESC, s.id DESC
         LIMIT %(limit)s
        """,
        {"organization_id": organization_id, **page_params(before, limit)},
    )


async def list_over(tx: Tx, *, now: datetime, after: SubscriptionPlace | None, limit: int) -> list[SubscriptionPlace]:
    """Return up to `limit` live contracts and prepaid subscriptions of all organisations whose period is over.

    They are ordered by organisation and id.
    """
    return await tx.all(
        SubscriptionPlace,
        """
        SELECT organization_id, id
          FROM subscriptions
         WHERE status IN ('trialing', 'active', 'past_due')
           AND provider <> 'card'
           AND paid_through <= %(now)s
           AND (organization_id, id) > (%(organization_id)s::text, %(id)s::text)
         ORDER BY organization_id, id
         LIMIT %(limit)s
        """,
        {
            "now": now,
            "organization_id": "" if after is None else after.organization_id,
            "id": "" if after is None else after.id,
            "limit": limit,
        },
    )


async def list_holders(tx: Tx, plan_id: str, *, after: str, limit: int) -> list[PlanHolder]:
    """Return up to `limit` organisations with a live Audience subscription of a plan, by id, after the id `after`."""
    return await tx.all(
        PlanHolder,
        """
        SELECT DISTINCT organization_id
          FROM subscriptions
         WHERE plan_id = %(plan_id)s
           AND status IN ('trialing', 'active', 'past_due')
           AND audience_mode IS NOT NULL
           AND organization_id > %(after)s
         ORDER BY organization_id
         LIMIT %(limit)s
        """,
        {"plan_id": plan_id, "after": after, "limit": limit},
    )
