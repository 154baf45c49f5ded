"""Until when each subscription is paid.

Until the new release runs everywhere, the release before continues to write subscriptions, without what is added here.
A trigger completes contracts and what is prepaid. A card subscription that it inserts, like each that is live now, is
asked about once, after half an hour.
"""

from soundmark.kit.postgres.revision import run_script

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Add the columns, and fill them with what is known."""
    run_script("""
SET LOCAL lock_timeout = '2s';

ALTER TABLE subscriptions
    ADD COLUMN paid_through timestamptz,
    ADD COLUMN paid_period_end timestamptz,
    ADD COLUMN paid_invoice_at timestamptz,
    ADD COLUMN is_price_known boolean NOT NULL DEFAULT true,
    ADD COLUMN reread_at timestamptz DEFAULT now() + interval '30 minutes',
    ADD COLUMN rereads integer NOT NULL DEFAULT 0;

ALTER TABLE subscriptions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE checkouts NO FORCE ROW LEVEL SECURITY;

-- The provider moved the end of a period that is not paid, so what is known to be paid ends where that period began.
-- Its length is that of the price: of the checkout's offer if it still sells the plan.
WITH lengths AS (
    SELECT s.organization_id, s.id,
           (SELECT CASE o.price_interval WHEN 'year' THEN interval '1 year' ELSE interval '1 month' END
              FROM offers o
              LEFT JOIN checkouts c
                ON c.organization_id = s.organization_id AND c.id = s.checkout_id AND c.offer_id = o.id
             WHERE o.provider = 'card' AND o.plan_id = s.plan_id
             ORDER BY c.id NULLS LAST, o.active DESC, o.id
             LIMIT 1) AS length
      FROM subscriptions s
)
UPDATE subscriptions s
   SET paid_through = CASE
           WHEN s.provider = 'card' AND s.status = 'past_due' THEN
               (s.current_period_end AT TIME ZONE 'UTC' - coalesce(l.length, interval '1 month')) AT TIME ZONE 'UTC'
           ELSE s.current_period_end END,
       reread_at = CASE
           WHEN s.provider = 'card' AND s.status IN ('trialing', 'active', 'past_due') THEN s.reread_at END
  FROM lengths l
 WHERE l.organization_id = s.organization_id
   AND l.id = s.id;

UPDATE subscriptions SET paid_period_end = paid_through WHERE provider = 'card';

ALTER TABLE checkouts FORCE ROW LEVEL SECURITY;
ALTER TABLE subscriptions FORCE ROW LEVEL SECURITY;

ALTER TABLE subscriptions ADD CONSTRAINT subscriptions_paid_check CHECK (
    provider = 'card'
    OR (is_price_known AND num_nonnulls(paid_period_end, paid_invoice_at, reread_at) = 0)
);

DROP INDEX subscriptions_by_end;
CREATE INDEX subscriptions_by_end ON subscriptions (paid_through)
    WHERE status IN ('trialing', 'active', 'past_due');
CREATE INDEX subscriptions_to_reread ON subscriptions (reread_at) WHERE reread_at IS NOT NULL;

CREATE FUNCTION keep_paid_through() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.reread_at := NULL;
    IF NEW.status = 'active' THEN
        NEW.paid_through := NEW.current_period_end;
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER subscriptions_paid_through BEFORE INSERT OR UPDATE ON subscriptions
    FOR EACH ROW WHEN (NEW.provider <> 'card') EXECUTE FUNCTION keep_paid_through();
""")
