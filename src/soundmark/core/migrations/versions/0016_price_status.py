"""Whether the card provider has the price of an offer.

A process of the release before leaves it out of new offers; null then counts as `unknown`, until the job has asked.
"""

from soundmark.kit.postgres.revision import run_script

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the column; what is known of a price shows that the provider had it."""
    run_script("""
ALTER TABLE offers ADD COLUMN price_status text;
UPDATE offers
   SET price_status = CASE WHEN num_nulls(currency, amount_minor) = 0 THEN 'known' ELSE 'unknown' END
 WHERE provider = 'card';
ALTER TABLE offers ADD CONSTRAINT offers_status_check CHECK (
    price_status IS NULL OR (provider = 'card' AND price_status IN ('known', 'unknown', 'missing'))
);
""")
