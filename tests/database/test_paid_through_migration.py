"""What the migration makes of the subscriptions that an earlier release stored, and of those that it still stores."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.migrations import migrate

BEFORE = "0014"
ORGANIZATION = "org_b2xkLXJhZGlvLWV4YW1wbA"
END = datetime(2027, 3, 31, 10, tzinfo=UTC)
COLUMNS = (
    "organization_id, id, plan_id, product, audience_mode, provider, status, current_period_end,"
    " cancel_at_period_end, checkout_id, provider_reference, contract_reference, created_at, updated_at"
)
# What the release before writes: it knows nothing of what was paid.
INSERT = f"INSERT INTO subscriptions ({COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, false, %s, %s, %s, %s, %s)"


def insert(superuser: psycopg.Connection, name: str, provider: str, status: str, end: datetime | None = END) -> None:
    """Store a subscription as the release before does; that with a card is of the offer named after it."""
    is_contract = provider == "contract"
    plan = ("plan_audience_contract", "audience", "contract") if is_contract else ("plan_codes_starter", "codes", None)
    superuser.execute(
        INSERT,
        [
            ORGANIZATION, f"bsu_{name}", *plan, provider, status, end, f"bco_{name}",
            f"sub_{name}" if provider == "card" else None, name if is_contract else None, END, END,
        ],
    )  # fmt: skip


def insert_checkout(superuser: psycopg.Connection, name: str, interval: str | None) -> None:
    """Store the checkout that began a card subscription, and the offer of a price with this interval."""
    superuser.execute(
        "INSERT INTO offers (id, plan_id, provider, active, price_reference, price_interval, updated_at)"
        " VALUES (%s, 'plan_codes_starter', 'card', false, %s, %s, now())",
        [f"offer_{name}", f"price_{name}", interval],
    )
    superuser.execute(
        "INSERT INTO checkouts (organization_id, id, offer_id, plan_id, product, provider, status, price_reference,"
        " created_at, expires_at, completed_at)"
        " VALUES (%s, %s, %s, 'plan_codes_starter', 'codes', 'card', 'completed', 'price', %s, %s, %s)",
        [ORGANIZATION, f"bco_{name}", f"offer_{name}", END - timedelta(days=2), END, END],
    )


def rows(superuser: psycopg.Connection, columns: str) -> dict[str, Any]:
    """Return a value of each subscription, by its name."""
    found = superuser.execute(f"SELECT substr(id, 5), {columns} FROM subscriptions".encode()).fetchall()
    return dict(found)


@pytest.fixture
def old(cluster: RunningCluster) -> tuple[Secret, Secret]:
    """A database of the release before, with an organisation: the URL of its owner, and that of a superuser."""
    name = "paid_through_under_test"
    with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
    url = cluster.create_role_and_database(name)
    migrate(url, "soundmark.core", until=BEFORE)
    with psycopg.connect(cluster.superuser_url_of(name).reveal(), autocommit=True) as superuser:
        superuser.execute(
            "INSERT INTO organizations (id, name, created_at) VALUES (%s, 'Radio', now())", [ORGANIZATION]
        )
    return url, cluster.superuser_url_of(name)


def test_what_is_known_to_be_paid_is_stored(old: tuple[Secret, Secret]) -> None:
    """The end of the period, unless the provider has moved that without a payment: then it ends where that began."""
    url, superuser_url = old
    with psycopg.connect(superuser_url.reveal(), autocommit=True) as superuser:
        for name, interval in (("monthly", "month"), ("yearly", "year"), ("unknown", None)):
            insert_checkout(superuser, name, interval)
            insert(superuser, name, "card", "past_due")
        for status in ("trialing", "active", "cancelled", "expired"):
            insert(superuser, status, "card", status)
        insert(superuser, "endless", "card", "past_due", None)
        insert(superuser, "prepaid", "local", "active")
        insert(superuser, "contract", "contract", "active", None)
        before = datetime.now(UTC)
        migrate(url, "soundmark.core")
        after = datetime.now(UTC)

        month = datetime(2027, 2, 28, 10, tzinfo=UTC)
        year = datetime(2026, 3, 31, 10, tzinfo=UTC)
        past_due = {"monthly": month, "yearly": year, "unknown": month, "endless": None}
        others = dict.fromkeys(("trialing", "active", "cancelled", "expired", "prepaid"), END)
        assert rows(superuser, "paid_through") == past_due | others | {"contract": None}
        of_a_card = past_due | others | {"contract": None, "prepaid": None}
        assert rows(superuser, "paid_period_end") == of_a_card
        assert set(rows(superuser, "is_price_known").values()) == {True}
        due = {name: at for name, at in rows(superuser, "reread_at").items() if at is not None}
        assert due.keys() == {*past_due, "trialing", "active"}
        pause = timedelta(minutes=30)
        assert all(before + pause <= at <= after + pause for at in due.values()), "within an hour"


def test_what_the_release_before_writes_afterwards_is_complete_or_asked_about(old: tuple[Secret, Secret]) -> None:
    """It continues to serve until every process is replaced."""
    url, superuser_url = old
    later = END + timedelta(days=30)
    with psycopg.connect(superuser_url.reveal(), autocommit=True) as superuser:
        migrate(url, "soundmark.core")
        insert(superuser, "prepaid", "local", "active")
        insert(superuser, "contract", "contract", "active")
        insert(superuser, "card", "card", "active")
        assert rows(superuser, "paid_through") == {"prepaid": END, "contract": END, "card": None}
        assert [name for name, at in rows(superuser, "reread_at").items() if at is not None] == ["card"]

        superuser.execute("UPDATE subscriptions SET current_period_end = %s", [later])
        assert rows(superuser, "paid_through") == {"prepaid": later, "contract": later, "card": None}
        superuser.execute("UPDATE subscriptions SET status = 'cancelled', current_period_end = NULL")
        assert rows(superuser, "paid_through") == {"prepaid": later, "contract": later, "card": None}
