"""Whom the local provider is asked for, and when it last said that a payment is unpaid.

Processes of the release before count as those that answer notifications.
"""

from soundmark.kit.postgres.revision import run_script

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the two columns."""
    run_script("""
ALTER TABLE local_verifications ADD COLUMN share text NOT NULL DEFAULT 'public';
ALTER TABLE local_verifications
    ADD CONSTRAINT local_verifications_share_check CHECK (share IN ('public', 'jobs')),
    DROP CONSTRAINT local_verifications_pkey,
    ADD CONSTRAINT local_verifications_pkey PRIMARY KEY (minute, share);

ALTER TABLE checkouts ADD COLUMN unpaid_at timestamptz;
""")
