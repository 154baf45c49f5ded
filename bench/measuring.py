"""Events to deliver: an Audience with integrations, and bodies that a publisher and Core have signed.

Every event is a distinct measurement with its own id, token and proof: recording is measured, so none is a duplicate.
"""

import hmac
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import psycopg

from soundmark.audience.secrets import seal_hmac_secret
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

MASTER_KEY: Final = bytes(range(64, 96))
ORGANIZATION_ID: Final = "org_YmVuY2gtb3JnYW5pc2F0aW"
PROJECT_ID: Final = "prj_YmVuY2gtcHJvamVjdC1leG"
INTEGRATION_ID: Final = "int_YmVuY2gtaW50ZWdyYXRpb2"
CODES_COUNT: Final = 1000
DAYS_COUNT: Final = 30
_SIGNED_AT_ONCE: Final = 64
CORE: Final = SigningKey.from_seed("sig_YmVuY2gta2V5LW9mLWNvcm", bytes(range(96, 128)))
_SECRET: Final = Secret("xhm_" + "b" * 43)


@dataclass(frozen=True, slots=True)
class Measured:
    """A database of Audience with one integration; `everything` has more rights than Audience itself."""

    url: Secret
    everything: Secret


def measured(cluster: RunningCluster, name: str, events_count: int) -> Measured:
    """Make a database with an entitled integration and `events_count` events of the last 30 days."""
    url = cluster.create_role_and_database(name)
    migrate(url, "soundmark.audience")
    everything = cluster.superuser_url_of(name)
    sealed = seal_hmac_secret(Sealer(MASTER_KEY, SystemEntropy()), INTEGRATION_ID, _SECRET)
    with psycopg.connect(everything.reveal(), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO integrations (id, organization_id, project_id, mode, retention_days, sealed_secret,"
            " core_key_id, core_public_key, created_at) VALUES (%s, %s, %s, 'contract', 90, %s, %s, %s, now())",
            (INTEGRATION_ID, ORGANIZATION_ID, PROJECT_ID, sealed, CORE.key_id, CORE.public_key),
        )
        connection.execute(
            "INSERT INTO entitlements VALUES (%s, 'contract', 1000000000000, NULL, 1)", (ORGANIZATION_ID,)
        )
        connection.execute(
            "INSERT INTO measured_codes (integration, number, xr_id) SELECT 1, code, 'xr_' || lpad(code::text, 22, '0')"
            " FROM generate_series(1, %s) AS code",
            (CODES_COUNT,),
        )
        _store(connection, events_count)
        for table in ("events", "event_ids", "spent_proofs", "measured_codes"):
            connection.execute(f"VACUUM ANALYZE {table}".encode())
        connection.execute("CHECKPOINT")
    return Measured(url, everything)


def _store(connection: psycopg.Connection[tuple[object, ...]], count: int) -> None:
    """Store `count` events as they would have arrived: day after day, each with its event id and its proof."""
    unique = _without_uniqueness(connection)
    for day in range(DAYS_COUNT):
        values = {"count": count // DAYS_COUNT, "days": DAYS_COUNT - 1 - day, "codes": CODES_COUNT}
        connection.execute(
            "INSERT INTO events SELECT (random() * 9e18)::bigint, 1, current_date - %(days)s,"
            " (random() * (%(codes)s - 1))::int + 1, n %% 86400000, n %% 9, 516 FROM generate_series(1, %(count)s) n",
            values,
        )
        connection.execute(
            "INSERT INTO event_ids SELECT 1, gen_random_uuid(), gen_random_uuid(), current_date - %(days)s"
            " FROM generate_series(1, %(count)s)",
            values,
        )
        connection.execute(
            "INSERT INTO spent_proofs SELECT 1, (lpad(to_hex(extract(epoch FROM current_date - %(days)s)::bigint"
            " + n / 100), 8, '0') || left(md5(random()::text), 24))::uuid, current_date - %(days)s"
            " FROM generate_series(1, %(count)s) n",
            values,
        )
    for statement in unique:
        connection.execute(statement.encode())


def _without_uniqueness(connection: psycopg.Connection[tuple[object, ...]]) -> list[str]:
    """Drop the unique indexes and return the statements that restore them: building is much faster than growing.

    The result is as full as a grown index, though: random event ids fill theirs to 70 of 100.
    """
    rows = connection.execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE contype IN ('p', 'u') AND conrelid::regclass::text IN ('events', 'event_ids', 'spent_proofs')"
    ).fetchall()
    given = []
    for table, name, definition in rows:
        connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
        fill = " WITH (fillfactor = 70)" if table != "spent_proofs" else ""
        given.append(f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}{fill}")
    return given


def write_events(path: Path, count: int) -> None:
    """Write a line for each of `count` events: its HMAC as hexadecimal digits, a space, and its body."""
    with path.open("w") as file:
        for signature, body in _events(count):
            file.write(f"{signature} {body}\n")


def _events(count: int) -> Iterator[tuple[str, str]]:
    """Yield events put together by hand, because a benchmark needs a million; Audience refuses malformed ones."""
    key = _SECRET.reveal().encode()
    issued_at = expires_at = ""
    for number in range(count):
        if number % _SIGNED_AT_ONCE == 0:
            now = datetime.now(UTC)
            issued_at, expires_at = format_timestamp(now), format_timestamp(now + timedelta(minutes=5))
        xr_id = f"xr_{number % CODES_COUNT + 1:022d}"
        signed = (
            f'{{"campaign_id":null,"expires_at":"{expires_at}","integration_id":"{INTEGRATION_ID}",'
            f'"issued_at":"{issued_at}","key_id":"{CORE.key_id}","proof_id":"prf_{secrets.token_urlsafe(16)}",'
            f'"xr_id":"{xr_id}"'
        )
        signature = base64url.encode(CORE.sign(f"{signed}}}".encode()))
        body = (
            f'{{"event_id":"evt_{secrets.token_urlsafe(16)}","integration_id":"{INTEGRATION_ID}","xr_id":"{xr_id}",'
            f'"occurred_at":"{issued_at}","receiver_class":"phone","measurement_token":"mt_{secrets.token_urlsafe(32)}",'
            f'"country":"TN","proof":{signed},"signature":"{signature}"}}}}'
        )
        yield hmac.digest(key, body.encode(), "sha256").hex(), body
