"""`soundmark platform accounting retry`: one failed draft invoice goes back to the queue."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.crypto.secret import Secret

from .conftest import Done, run

OUTBOX_ID = "acc_" + "o" * 22
JOBS = "SELECT args ->> 'outbox_id' FROM procrastinate_jobs WHERE task_name = 'make_draft_invoice'"


@pytest.fixture
async def tenant(api: Api) -> Tenant:
    """An organisation with one project."""
    return await make_tenant(api)


@pytest.fixture
async def draft(tenant: Tenant, rival: Rival) -> str:
    """A draft invoice that failed after three attempts."""
    await rival.run(
        "INSERT INTO subscriptions (organization_id, id, plan_id, product, provider, status, cancel_at_period_end,"
        " created_at, updated_at)"
        " VALUES (%s, 'bsu_example', 'plan_codes_starter', 'codes', 'local', 'active', false, now(), now())",
        tenant.organization_id,
    )
    await rival.run(
        "INSERT INTO accounting_outbox (organization_id, id, subscription_id, checkout_id, payment_digest, description,"
        " amount_minor, currency, period_start, period_end, status, attempts, give_up_at, created_at, updated_at)"
        " VALUES (%s, %s, 'bsu_example', 'bco_example', 'x', 'Codes Studio', 10555, 'TND', now(), now(), 'failed', 3,"
        " now(), now(), now())",
        tenant.organization_id,
        OUTBOX_ID,
    )
    return OUTBOX_ID


async def retry(database_url: Secret, outbox_id: str) -> Done:
    settings = {"CORE_DATABASE_URL": database_url.reveal()}
    return await asyncio.to_thread(run, "platform", "accounting", "retry", outbox_id, settings=settings)


async def test_a_failed_draft_is_pending_again_for_another_day(draft: str, database_url: Secret, rival: Rival) -> None:
    done = await retry(database_url, draft)
    assert (done.status, done.out) == (0, f"{draft} is pending again\n")
    ((status, attempts, due_at, give_up_at),) = await rival.rows(
        "SELECT status, attempts, due_at, give_up_at FROM accounting_outbox"
    )
    assert (status, attempts, give_up_at - due_at) == ("pending", 0, timedelta(days=1))
    assert abs(due_at - datetime.now(UTC)) < timedelta(minutes=5)
    assert await rival.rows(JOBS) == [(draft,)]


@pytest.mark.parametrize(
    ("status", "due", "invoice_id"), [("pending", "now()", None), ("processing", "now()", None), ("completed", None, 7)]
)
async def test_only_a_failed_draft_is_sent_back(
    draft: str, database_url: Secret, rival: Rival, status: str, due: str | None, invoice_id: int | None
) -> None:
    await rival.run(
        f"UPDATE accounting_outbox SET status = %s, due_at = {due or 'NULL'}, invoice_id = %s", status, invoice_id
    )
    done = await retry(database_url, draft)
    assert done.refusal == f"{draft} is {status}; only a draft invoice that has failed can be retried"
    assert await rival.rows("SELECT status, attempts FROM accounting_outbox") == [(status, 3)]
    assert await rival.rows(JOBS) == []


@pytest.mark.parametrize("outbox_id", ["acc_" + "u" * 22, "nonsense", "acc_\n"])
async def test_an_unknown_draft(database_url: Secret, outbox_id: str) -> None:
    done = await retry(database_url, outbox_id)
    assert done.refusal == f"there is no draft invoice {outbox_id!r}"


async def test_of_two_retries_one_is_refused(draft: str, database_url: Secret, rival: Rival) -> None:
    async with rival.holding("SELECT 1 FROM accounting_outbox FOR UPDATE"):
        both = [asyncio.create_task(retry(database_url, draft)) for _ in range(2)]
        await rival.until_someone_waits(2)
    assert sorted(done.status for done in await asyncio.gather(*both)) == [0, 1]
    assert await rival.rows(JOBS) == [(draft,)]
