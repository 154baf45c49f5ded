"""The id with which the accounting system answered the post of a draft invoice."""

from soundmark.kit.postgres.revision import run_script

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the column."""
    run_script("""
ALTER TABLE accounting_outbox
    ADD COLUMN posted_invoice_id bigint,
    ADD CONSTRAINT accounting_outbox_posted_check CHECK (posted_invoice_id BETWEEN 1 AND 2147483647);
""")
