"""Plans that PostgreSQL made while tables were small, and keeps: they read no more because more is stored."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import psycopg
import pytest
from support.database.connections import borrow
from support.tenancy.audit_entries import ENTROPY, NOBODY, NOW

from soundmark.core.domain.tenancy.scope import TenantScope, User
from soundmark.core.steps.audit import record_as
from soundmark.core.store.codes import issuance_receipts
from soundmark.core.store.log import queue, tree
from soundmark.core.store.support import tickets
from soundmark.core.store.tenancy import audit, audit_chain, deletions
from soundmark.core.store.webhooks import dispatch
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text.paging import Position

_NAME: Final = "core_plans"
_TENANT: Final = "org_A"
_FEW: Final = 100  # From 50 on, PostgreSQL collects statistics by itself, sooner or later.
_MANY: Final = 3000
_USES: Final = 12  # The driver prepares at the fifth use, and the server keeps a plan from the fifth after that on.
_READ: Final = """
    SELECT sum(pg_stat_get_xact_tuples_returned(oid))::bigint
      FROM pg_class
     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')
"""
_PERSON: Final = User("person", "person@example.org", has_mfa=True, is_platform_admin=False)
_SCOPE: Final = TenantScope(_TENANT, None, NOBODY, _PERSON, "owner", frozenset({"owner"}))
_ORGANIZATION: Final = "INSERT INTO organizations (id, name, created_at) VALUES ('org_A', 'Radio', now())"
_AUDIT: Final = (
    """
    INSERT INTO audit_entries (organization_id, id, action, actor_type, actor_id, outcome, metadata, created_at,
                               finalised_at)
    SELECT 'org_A', 'aud_' || n, 'project.updated', 'system', 'tests', 'completed', '{}', time, time FROM given
    """,
    """
    INSERT INTO audit_seals (organization_id, position, entry_id, stage, seal)
    SELECT 'org_A', n, 'aud_' || n, 'final', '' FROM given
    """,
)
_TICKETS: Final = (
    """
    INSERT INTO tickets (organization_id, id, subject_id, request_id, subject, status, conversation_id, mailbox_id,
                         post_after, created_at)
    SELECT 'org_A', 'tkt_' || n, 'person', n::text, 'Help', 'closed', n, 1, time, time FROM given
    """,
    "INSERT INTO desk_conversations SELECT n, 'org_A', 'tkt_' || n FROM given",
)


def time_of(number: int) -> datetime:
    return datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=number)


async def write_entry(tx: Tx) -> object:
    """Write an entry and the note that refers to it."""
    return await record_as(tx, NOBODY, ENTROPY, "project.updated", organization_id=_TENANT, now=NOW)


class Case(NamedTuple):
    """A statement, and those that fill its tables with `given` rows."""

    filling: tuple[str, ...]
    use: Callable[[Tx], Awaitable[object]]


CASES: Final = {
    "receipt": Case(
        (
            """
            INSERT INTO issuance_receipts (organization_id, key_digest, route, request_digest, answer, created_at)
            SELECT 'org_A', sha256(n::text::bytea), 'checkout', '', '', time FROM given
            """,
        ),
        lambda tx: issuance_receipts.find(tx, _TENANT, [b"unknown"]),
    ),
    "entry and its foreign key": Case(_AUDIT, write_entry),
    "page of the audit log": Case(
        _AUDIT,
        lambda tx: audit.list_newest_first(tx, _SCOPE, audit.AuditFilter(), before=None, limit=20),
    ),
    "links of the chain": Case(_AUDIT, lambda tx: audit_chain.list_links(tx, _TENANT, after=10, limit=20)),
    "leaf of the log": Case(
        ("INSERT INTO log_leaves (position, entry, digest) SELECT n, '', sha256(n::text::bytea) FROM given",),
        lambda tx: tree.find_leaf(tx, b"unknown", size=_MANY),
    ),
    "queue of the log": Case(
        ("INSERT INTO log_queue (content) SELECT '' FROM given",), lambda tx: queue.delete_oldest(tx, limit=5)
    ),
    "page of tickets": Case(
        _TICKETS, lambda tx: tickets.list_newest_first(tx, _TENANT, before=Position(time_of(50), ""), limit=20)
    ),
    "due deliveries": Case(
        (
            """
            INSERT INTO webhook_endpoints (organization_id, id, url, enabled, sealed_secret, created_at)
            VALUES ('org_A', 'whe_A', 'https://example.org', true, '', now()) ON CONFLICT DO NOTHING
            """,
            """
            INSERT INTO webhook_events (organization_id, id, type, actor_type, actor_id, data, created_at)
            SELECT 'org_A', 'evn_' || n, 'code.issued', 'system', 'tests', '{}', time FROM given
            """,
            """
            INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, event_id, event_type, status,
                                            next_attempt_at, created_at)
            SELECT 'org_A', 'whd_' || n, 'whe_A', 'evn_' || n, 'code.issued',
                   CASE n % 50 WHEN 0 THEN 'pending' ELSE 'delivered' END, CASE n % 50 WHEN 0 THEN time END, time
              FROM given
            """,
        ),
        lambda tx: dispatch.update_claimed(tx, _TENANT, {"whe_A": 5}, now=NOW, lease_until=NOW),
    ),
}


@pytest.fixture
def superuser(cluster: RunningCluster) -> Iterator[psycopg.Connection[Any]]:
    """A connection with every right to a database of Core with an organisation, of which no statistics exist."""
    with borrow(cluster.superuser_url) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {_NAME} WITH (FORCE)".encode())
    migrate(cluster.create_role_and_database(_NAME), "soundmark.core")
    with psycopg.connect(cluster.superuser_url_of(_NAME).reveal(), autocommit=True) as connection:
        connection.execute(_ORGANIZATION)
        yield connection


@pytest.fixture
async def db(cluster: RunningCluster, superuser: psycopg.Connection[Any]) -> AsyncIterator[Database]:
    """A pool of one connection to that database, so that all transactions have the same plans."""
    assert superuser is not None, "the database is migrated"
    db = Database(cluster.create_role_and_database(_NAME), pool_size=1, application_name="tests")
    await db.open()
    yield db
    await db.close()


def fill(superuser: psycopg.Connection[Any], filling: tuple[str, ...], *, first: int, last: int) -> None:
    """Insert the rows with these numbers, each with a time of its own."""
    for statement in filling:
        given = (
            "WITH given AS (SELECT n, '2026-11-01Z'::timestamptz + n * interval '1 second' AS time"
            f" FROM generate_series({first}, {last}) AS n) "
        )
        superuser.execute((given + statement).encode())


async def count_read(db: Database, use: Callable[[Tx], Awaitable[object]]) -> int:
    """Return how many rows and entries of indexes one use reads, in a transaction of its own."""
    async with db.transaction(tenant=_TENANT) as tx:
        before: int = await tx.value(_READ)
        await use(tx)
        after: int = await tx.value(_READ)
    return after - before


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_a_plan_for_few_rows_reads_few_of_many(
    db: Database, superuser: psycopg.Connection[Any], subtests: pytest.Subtests, *, is_analysed: bool
) -> None:
    """PostgreSQL keeps the plan of a prepared statement until it collects statistics, again or for the first time."""
    fillings = dict.fromkeys(case.filling for case in CASES.values())
    for filling in fillings:
        fill(superuser, filling, first=1, last=_FEW)
    if is_analysed:
        superuser.execute("ANALYZE")
    for case in CASES.values():
        for _ in range(_USES):
            await count_read(db, case.use)
    for filling in fillings:
        fill(superuser, filling, first=_FEW + 1, last=_MANY)
    for name, case in CASES.items():
        with subtests.test(name):
            assert await count_read(db, case.use) < _FEW * 2


async def test_deleting_an_organization_finds_each_conversation_by_its_ticket(
    db: Database, superuser: psycopg.Connection[Any]
) -> None:
    """A foreign key without an index would read all conversations for each ticket."""
    fill(superuser, _TICKETS, first=1, last=_FEW)
    assert await count_read(db, lambda tx: deletions.delete_organization(tx, _TENANT)) < _FEW * 20
