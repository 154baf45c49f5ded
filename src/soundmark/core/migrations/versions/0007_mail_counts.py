"""How many mails went out in our name, so that nobody can use us to flood a mailbox."""

from typing import Final

from soundmark.kit.postgres.revision import run_script

revision = "0007"
down_revision = "0006"

_SCRIPT: Final = """
-- Mails of a UTC day, of an organisation or to an address. What is counted is named by a keyed digest: rows outlive the
-- organisation, and tell nobody an address.
CREATE TABLE mail_counts (
    day         date    NOT NULL,
    counted     bytea   NOT NULL,
    mails_count integer NOT NULL,
    CONSTRAINT mail_counts_pkey PRIMARY KEY (day, counted),
    CONSTRAINT mail_counts_count_check CHECK (mails_count >= 0)
);
"""


def upgrade() -> None:
    """Create what mails are counted in."""
    run_script(_SCRIPT)
