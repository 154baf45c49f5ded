"""The number of mails sent in our name, which is limited."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0007"
down_revision = "0006"

_SCRIPT: Final = """
-- The number of mails of a UTC day, of an organisation or to an address, under a keyed digest of it: rows outlive the
-- organisation, and disclose no address.
CREATE TABLE mail_counts (
    day         date    NOT NULL,
    counted     bytea   NOT NULL,
    mails_count integer NOT NULL,
    CONSTRAINT mail_counts_pkey PRIMARY KEY (day, counted),
    CONSTRAINT mail_counts_count_check CHECK (mails_count >= 0)
);
"""


def upgrade() -> None:
    """Create the table."""
    run_script(_SCRIPT)
