"""Events of any day and in any number, written to the database without ingestion."""

import hashlib
import itertools
import uuid
from collections.abc import Mapping
from datetime import date

from support.audience.client import AudienceIntegration
from support.database.rival import Rival

_numbers = itertools.count(1)


async def make_aged_events(rival: Rival, given: AudienceIntegration, events: Mapping[date, int]) -> None:
    """Write this many events of each day, with their ids, their proofs and the counters of the day."""
    ((integration,),) = await rival.rows("SELECT number FROM integrations WHERE id = %s", given.id)
    await rival.run(
        "INSERT INTO measured_codes (integration, number, xr_id) VALUES (%s, 1, 'xr_of_the_test_00000')"
        " ON CONFLICT DO NOTHING",
        integration,
    )
    ((code,),) = await rival.rows("SELECT number FROM measured_codes WHERE integration = %s", integration)
    rows = [(day, next(_numbers)) for day, count in events.items() for _ in range(count)]
    days, tokens = [day for day, _ in rows], [token for _, token in rows]
    marks = [uuid.UUID(bytes=hashlib.sha256(str(token).encode()).digest()[:16]) for token in tokens]
    await rival.run(
        "INSERT INTO events (token, integration, day, code, occurred_ms, receiver, country)"
        " SELECT token, %s, day, %s, 0, 0, NULL FROM unnest(%s::date[], %s::bigint[]) AS given (day, token)",
        integration,
        code,
        days,
        tokens,
    )
    await rival.run(
        "INSERT INTO event_ids (integration, event_id, body, day)"
        " SELECT %s, mark, mark, day FROM unnest(%s::date[], %s::uuid[]) AS given (day, mark)",
        integration,
        days,
        marks,
    )
    await rival.run(
        "INSERT INTO spent_proofs (integration, proof, day)"
        " SELECT %s, mark, day FROM unnest(%s::date[], %s::uuid[]) AS given (day, mark)",
        integration,
        days,
        marks,
    )
    await rival.run(
        "INSERT INTO integrity_days (integration, day, event_replays) SELECT %s, day, 1 FROM unnest(%s::date[]) AS day"
        " ON CONFLICT DO NOTHING",
        integration,
        sorted(events),
    )


async def list_kept_days(rival: Rival, given: AudienceIntegration, table: str) -> list[date]:
    """Return the days for which the integration has rows in `table`, ascending."""
    rows = await rival.rows(
        f"SELECT DISTINCT day FROM {table} WHERE integration = (SELECT number FROM integrations WHERE id = %s)"
        " ORDER BY day",
        given.id,
    )
    return [day for (day,) in rows]
