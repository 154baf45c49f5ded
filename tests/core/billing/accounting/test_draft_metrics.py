"""What the metrics say of draft invoices: how many there are by outcome, and how old the oldest that waits is."""

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People

from soundmark.core.context import Context
from soundmark.core.live import draft_counts
from soundmark.core.live.draft_counts import DraftCounts
from soundmark.kit.http.responses.problems import DatabaseUnavailable

from .conftest import OTHER_THIRDPARTY_ID, Customer, add_draft

STATUSES = ("pending", "processing", "completed", "failed")


def exported() -> dict[str, float | None]:
    return {each: REGISTRY.get_sample_value("soundmark_draft_invoices", {"status": each}) for each in STATUSES}


def oldest_s() -> float | None:
    return REGISTRY.get_sample_value("soundmark_draft_invoices_oldest_seconds")


async def test_without_drafts_everything_is_zero(ctx: Context) -> None:
    await DraftCounts(ctx.db, ctx.clock).count()

    assert (exported(), oldest_s()) == (dict.fromkeys(STATUSES, 0), 0)


async def test_drafts_are_counted_by_outcome_and_the_oldest_that_waits_by_age(
    customer: Customer, ctx: Context, books: RunningSandbox, clock: FakeClock
) -> None:
    clock.freeze()
    counts = DraftCounts(ctx.db, ctx.clock)
    completed = await customer.draft(ctx, key="in_1")
    clock.advance(seconds=1)
    failed = await customer.draft(ctx, key="in_2")
    await add_draft(books, f"svc:{failed}", thirdparty_id=OTHER_THIRDPARTY_ID)
    for outbox_id in (completed, failed):
        assert await customer.work(ctx, outbox_id) is None
    clock.advance(minutes=90)
    waiting = await customer.draft(ctx, key="in_3")
    clock.advance(seconds=45)
    await customer.draft(ctx, key="in_4")
    await books.misbehave("accounting", "html")
    assert await customer.work(ctx, waiting) is not None

    await counts.count()

    assert exported() == {"pending": 2, "processing": 0, "completed": 1, "failed": 1}
    assert oldest_s() == 45, "what has ended does not wait"


async def test_those_of_every_organisation_count(
    customer: Customer, ctx: Context, people: People, rival: Rival
) -> None:
    outbox_id = await customer.draft(ctx)
    other = (await people.tenant_of("somebody")).organization_id
    for table in ("subscriptions", "accounting_outbox"):
        listed = await rival.rows(
            "SELECT string_agg(attname, ', ') FROM pg_attribute"
            f" WHERE attrelid = '{table}'::regclass AND attnum > 0 AND attname <> 'organization_id'"
        )
        ((columns,),) = listed
        await rival.run(f"INSERT INTO {table} (organization_id, {columns}) SELECT %s, {columns} FROM {table}", other)

    await DraftCounts(ctx.db, ctx.clock).count()

    assert exported()["pending"] == 2, outbox_id


class Stopped(BaseException):
    """The end of the loop."""


async def test_the_last_numbers_stay_while_the_database_cannot_be_reached(
    customer: Customer, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting goes on once it can."""
    await customer.draft(ctx)
    counts = DraftCounts(ctx.db, ctx.clock)
    count = counts.count
    called_count = 0

    async def fail_at_first() -> None:
        nonlocal called_count
        called_count += 1
        if called_count == 1:
            raise DatabaseUnavailable
        if called_count == 2:
            raise ZeroDivisionError
        if called_count == 4:
            raise Stopped
        await count()

    # Only this one: the Core of the session counts too.
    monkeypatch.setattr(counts, "count", fail_at_first)
    monkeypatch.setattr(draft_counts, "COUNT_EVERY_S", 0)
    with capture_logs() as logs, pytest.raises(Stopped):
        await counts.keep_counting()

    assert exported()["pending"] == 1
    assert [line["error"] for line in logs if line["event"] == "draft_invoices_not_counted"] == ["ZeroDivisionError"]
