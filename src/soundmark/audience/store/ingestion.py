"""What a group of events is judged by and written with: each statement serves the whole group.

The lists of a statement travel as the texts of arrays: their values are numbers, hexadecimal digits, days and ids, none
of which has a character that would have to be quoted.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

# The tables that are looked into grow by four orders of magnitude while a connection lives. Whatever the statistics
# said when a statement was planned, each value is looked up in an index: that is never wrong here.
SETTINGS: Final = (
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; "
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; SET statement_timeout = '4s'"
)

ENSURE_MONTHS: Final = """
    INSERT INTO event_months (organization_id, mode, first_day)
    SELECT organization_id, mode, first_day
      FROM unnest(%s::text[], %s::text[], %s::date[]) AS given (organization_id, mode, first_day)
     ORDER BY organization_id, mode, first_day
        ON CONFLICT (organization_id, mode, first_day) DO NOTHING
"""

# Lock order: docs/locks.md. Always by organisation and mode, so that two groups never wait for each other.
LOCK_MONTHS: Final = """
    SELECT months.organization_id, months.mode, months.events
      FROM unnest(%s::text[], %s::text[], %s::date[]) AS given (organization_id, mode, first_day)
      JOIN event_months AS months USING (organization_id, mode, first_day)
     ORDER BY months.organization_id, months.mode
       FOR NO KEY UPDATE OF months
"""

FIND_SOURCES: Final = """
    SELECT integrations.id, integrations.number, integrations.organization_id, integrations.mode,
           integrations.retention_days, integrations.sealed_secret, integrations.core_key_id,
           integrations.core_public_key, integrations.previous_key_id, integrations.previous_public_key,
           integrations.previous_until, integrations.revoked_at, entitlements.monthly_event_quota, entitlements.ends_at
      FROM integrations
      LEFT JOIN entitlements USING (organization_id, mode)
     WHERE integrations.id = ANY(%s::text[])
"""

FIND_EVENT_IDS: Final = """
    SELECT given.place, event_ids.body
      FROM unnest(%s::integer[], %s::uuid[]) WITH ORDINALITY AS given (integration, event_id, place)
      JOIN event_ids USING (integration, event_id)
"""

FIND_SPENT_PROOFS: Final = """
    SELECT given.place
      FROM unnest(%s::integer[], %s::uuid[]) WITH ORDINALITY AS given (integration, proof, place)
      JOIN spent_proofs USING (integration, proof)
"""

FIND_PAIRS: Final = """
    SELECT given.place
      FROM unnest(%s::integer[], %s::text[], %s::date[], %s::bigint[])
           WITH ORDINALITY AS given (integration, xr_id, day, token, place)
      JOIN measured_codes USING (integration, xr_id)
      JOIN events ON events.integration = given.integration
                 AND events.day = given.day
                 AND events.token = given.token
                 AND events.code = measured_codes.number
"""

# What is there already is answered too.
PUT_CODES: Final = """
    INSERT INTO measured_codes (integration, xr_id, campaign_id)
    SELECT integration, xr_id, campaign_id
      FROM unnest(%s::integer[], %s::text[], %s::text[]) AS given (integration, xr_id, campaign_id)
     ORDER BY integration, xr_id
        ON CONFLICT (integration, xr_id) DO UPDATE
       SET xr_id = excluded.xr_id
    RETURNING integration, xr_id, number
"""

INSERT_EVENTS: Final = """
    INSERT INTO events (token, integration, day, code, occurred_ms, receiver, country)
    SELECT *
      FROM unnest(%s::bigint[], %s::integer[], %s::date[], %s::integer[], %s::integer[], %s::smallint[],
                  %s::smallint[])
"""

INSERT_EVENT_IDS: Final = """
    INSERT INTO event_ids (integration, event_id, body, day)
    SELECT *
      FROM unnest(%s::integer[], %s::uuid[], %s::uuid[], %s::date[])
"""

INSERT_SPENT_PROOFS: Final = """
    INSERT INTO spent_proofs (integration, proof, day)
    SELECT *
      FROM unnest(%s::integer[], %s::uuid[], %s::date[])
"""

ADD_TO_MONTHS: Final = """
    UPDATE event_months AS months
       SET events = months.events + given.events
      FROM unnest(%s::text[], %s::text[], %s::date[], %s::bigint[]) AS given (organization_id, mode, first_day, events)
     WHERE months.organization_id = given.organization_id
       AND months.mode = given.mode
       AND months.first_day = given.first_day
"""

ADD_TO_INTEGRITY_DAYS: Final = """
    INSERT INTO integrity_days AS days (integration, day, event_replays, code_token_duplicates, proof_replays)
    SELECT *
      FROM unnest(%s::integer[], %s::date[], %s::bigint[], %s::bigint[], %s::bigint[])
        ON CONFLICT (integration, day) DO UPDATE
       SET event_replays = days.event_replays + excluded.event_replays,
           code_token_duplicates = days.code_token_duplicates + excluded.code_token_duplicates,
           proof_replays = days.proof_replays + excluded.proof_replays
"""

FIND_TRANSITION: Final = "SELECT began_at FROM proof_transition"


class SourceRow(NamedTuple):
    """A row of `FIND_SOURCES`."""

    id: str
    number: int
    organization_id: str
    mode: str
    retention_days: int
    sealed_secret: bytes
    core_key_id: str
    core_public_key: bytes
    previous_key_id: str | None
    previous_public_key: bytes | None
    previous_until: datetime | None
    revoked_at: datetime | None
    monthly_event_quota: int | None
    ends_at: datetime | None


def array(values: Iterable[Any]) -> str:
    """The text of an array of values that need no quotes; None is NULL."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def texts(values: Iterable[str]) -> str:
    """The text of an array of texts that need no quotes."""
    return "{" + ",".join(values) + "}"
