"""Making a draft invoice: one for each payment, exactly what was paid, and never validated or paid."""

import asyncio
import datetime as dt
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.database.rival import Rival
from support.outside.accounting import delete_invoice, list_invoices, list_operations
from support.outside.running_sandbox import RunningSandbox

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import LEASE

from .conftest import ENTITY, OTHER_THIRDPARTY_ID, THIRDPARTY_ID, Customer, add_draft

HALF_A_MINUTE = dt.timedelta(seconds=30)


async def test_a_draft_has_one_line_with_what_was_paid(customer: Customer, ctx: Context, books: RunningSandbox) -> None:
    outbox_id = await customer.draft(ctx)
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 1, 1)
    (draft,) = await list_invoices(books)
    assert abs(draft["date"] - ctx.clock.unix_s()) < 600
    assert (
        draft.items()
        >= {
            "entity": str(ENTITY),
            "socid": str(THIRDPARTY_ID),
            "type": "0",
            "ref_ext": f"svc:{outbox_id}",
            "total_ttc": "10.55500000",
        }.items()
    )
    (line,) = draft["lines"]
    assert (
        line.items()
        >= {
            "desc": "Codes Studio, 2026-11-20 to 2026-12-20",
            "qty": "1",
            "subprice": "8.86975000",
            "tva_tx": "19.0000",
            "product_type": "1",
            "date_start": 1795132800,
            "date_end": 1797724800,
        }.items()
    )
    assert await list_operations(books) == ["find_invoices", "create_invoice", "find_invoices"]


async def test_a_completed_draft_is_left_alone(customer: Customer, ctx: Context, books: RunningSandbox) -> None:
    outbox_id = await customer.draft(ctx)
    for _ in range(3):
        assert await customer.work(ctx, outbox_id) is None
    assert len(await list_operations(books)) == 3


async def test_eight_workers_at_once_make_one_invoice(
    customer: Customer, ctx: Context, books: RunningSandbox, rival: Rival
) -> None:
    ctx.clock.freeze()  # type: ignore[attr-defined]  # the tests' clock
    outbox_id = await customer.draft(ctx)
    async with rival.holding("SELECT 1 FROM accounting_outbox FOR UPDATE"):
        working = [asyncio.create_task(customer.work(ctx, outbox_id)) for _ in range(8)]
        await rival.until_someone_waits(8)
    ended = await asyncio.gather(*working)
    assert set(ended) <= {None, ctx.clock.now() + LEASE}
    assert (await list_operations(books)).count("create_invoice") == 1
    assert await customer.read(outbox_id) == ("completed", 1, 1)


# What comes back in place of the answer to a post, and whether the draft is made all the same.
UNKNOWN = {
    "down": False,
    "lost_answer": True,
    "half_body": True,
    "server_error": False,
    "false_error": True,
    "html": False,
    "firewall": False,
    "wrong_object": False,
    "endless": False,
}


@pytest.mark.parametrize(("fault", "is_made"), UNKNOWN.items())
async def test_whatever_a_post_answers_there_is_one_invoice(
    customer: Customer, ctx: Context, books: RunningSandbox, fault: str, *, is_made: bool
) -> None:
    """After an unclear answer the accounting system is searched again, before any second post."""
    api = customer.tenant.api
    now = api.clock.freeze()
    outbox_id = await customer.draft(ctx)
    await books.misbehave("accounting", fault, operation="create_invoice")
    again_at = await customer.work(ctx, outbox_id)
    if is_made:
        assert (again_at, await customer.read(outbox_id)) == (None, ("completed", 1, 1))
    else:
        assert (again_at, await customer.read(outbox_id)) == (now + HALF_A_MINUTE, ("pending", 1, None))
        api.clock.advance(seconds=30)
        assert await customer.work(ctx, outbox_id) is None
    assert len(await list_invoices(books)) == 1
    assert (await list_operations(books)).index("create_invoice") == 1, "a search comes first"


@pytest.mark.parametrize("fault", [fault for fault in UNKNOWN if fault not in {"lost_answer", "false_error"}])
async def test_without_a_search_nothing_is_posted(
    customer: Customer, ctx: Context, books: RunningSandbox, fault: str
) -> None:
    outbox_id = await customer.draft(ctx)
    await books.misbehave("accounting", fault)
    assert await customer.work(ctx, outbox_id) is not None
    assert await list_operations(books) == ["find_invoices"]
    assert await customer.read(outbox_id) == ("pending", 1, None)


async def test_a_lost_second_search_is_made_up_for_by_the_next_attempt(
    customer: Customer, ctx: Context, books: RunningSandbox
) -> None:
    outbox_id = await make_lost_draft(customer, ctx, books)
    assert await customer.work(ctx, outbox_id) is None
    assert (await list_operations(books)).count("create_invoice") == 1
    assert await customer.read(outbox_id) == ("completed", 2, 1)


async def test_an_invoice_that_is_there_already_is_adopted(
    customer: Customer, ctx: Context, books: RunningSandbox
) -> None:
    outbox_id = await customer.draft(ctx)
    await add_draft(books, f"svc:{outbox_id}")
    await books.misbehave("accounting", "altered", merge={"id": str(2**31 - 1)})
    assert await customer.work(ctx, outbox_id) is None
    assert len(await list_invoices(books)) == 1
    assert await customer.read(outbox_id) == ("completed", 1, 2**31 - 1)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([{"subprice": 8.87395}], "another_total"),
        ([{"thirdparty_id": OTHER_THIRDPARTY_ID}], "another_thirdparty"),
        ([{}, {}], "several_invoices"),
    ],
)
async def test_what_only_a_person_can_put_right_fails_at_once(
    customer: Customer, ctx: Context, books: RunningSandbox, found: list[dict[str, Any]], reason: str
) -> None:
    """It is logged with the draft's id and the reason, and without amounts."""
    outbox_id = await customer.draft(ctx)
    for changes in found:
        await add_draft(books, f"svc:{outbox_id}", **changes)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 1, None)
    assert len(await list_invoices(books)) == len(found)
    (logged,) = [line for line in logs if line["event"] == "draft_invoice_failed"]
    assert (logged["log_level"], logged["outbox_id"], logged["reason"]) == ("error", outbox_id, reason)
    assert "10.5" not in str(logs)
    assert "10555" not in str(logs)


async def test_a_system_that_rounds_to_two_decimals_is_found_out(
    customer: Customer, ctx: Context, books: RunningSandbox
) -> None:
    """The draft is there, with a total that nobody paid: a person sees it, and there is no second one."""
    await books.control("/accounting/settings", decimals=2)
    outbox_id = await customer.draft(ctx)
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 1, None)
    assert [invoice["total_ttc"] for invoice in await list_invoices(books)] == ["10.56000000"]


async def test_a_draft_that_the_search_does_not_find_is_read_by_its_id(
    customer: Customer, ctx: Context, books: RunningSandbox
) -> None:
    outbox_id = await customer.draft(ctx)
    await books.misbehave("accounting", "empty_list", operation="find_invoices", times=2)
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 1, 1)
    assert await list_operations(books) == ["find_invoices", "create_invoice", "find_invoices", "read_invoice"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"thirdparty_id": OTHER_THIRDPARTY_ID}, "another_thirdparty"),
        ({"subprice": 8.87395}, "another_total"),
        ({"ref_ext": "svc:acc_of-somebody-else"}, "another_reference"),
        ({"ref_ext": None}, "another_reference"),
    ],
)
async def test_an_invoice_that_is_read_must_be_the_draft(
    customer: Customer, ctx: Context, books: RunningSandbox, rival: Rival, changes: dict[str, Any], reason: str
) -> None:
    """A person changed it, or the settings name another accounting system: nothing is posted."""
    outbox_id = await make_lost_draft(customer, ctx, books)
    await add_draft(books, **{"ref_ext": f"svc:{outbox_id}", **changes})
    await rival.run("UPDATE accounting_outbox SET posted_invoice_id = 2")
    await books.misbehave("accounting", "empty_list", operation="find_invoices")
    with capture_logs() as logs:
        await customer.work(ctx, outbox_id)
    assert (logs[-1]["event"], logs[-1]["reason"]) == ("draft_invoice_failed", reason)
    assert len(await list_invoices(books)) == 2


async def test_a_draft_that_was_deleted_is_made_again(customer: Customer, ctx: Context, books: RunningSandbox) -> None:
    """Only a 404 says so."""
    outbox_id = await make_lost_draft(customer, ctx, books)
    await delete_invoice(books)
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 2, 2)
    operations = await list_operations(books)
    assert operations[-4:] == ["find_invoices", "read_invoice", "create_invoice", "find_invoices"]


@pytest.mark.parametrize("fault", ["down", "server_error", "html", "firewall", "wrong_object"])
async def test_while_an_earlier_draft_cannot_be_read_nothing_is_posted(
    customer: Customer, ctx: Context, books: RunningSandbox, fault: str
) -> None:
    outbox_id = await make_lost_draft(customer, ctx, books)
    await books.misbehave("accounting", "empty_list", operation="find_invoices")
    await books.misbehave("accounting", fault, operation="read_invoice")
    assert await customer.work(ctx, outbox_id) is not None
    assert await customer.read(outbox_id) == ("pending", 2, None)
    assert (await list_operations(books)).count("create_invoice") == 1


async def test_a_draft_that_is_gone_as_soon_as_it_is_made_fails(
    customer: Customer, ctx: Context, books: RunningSandbox, rival: Rival
) -> None:
    """Neither the search nor the read finds it; the id is kept, so that even a retry asks before it posts."""
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", "create_invoice")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await books.until_held("accounting")
    await delete_invoice(books)
    await books.release("accounting")
    with capture_logs() as logs:
        assert await working is None
    assert logs[-1]["reason"] == "not_found_after_post"
    assert await rival.rows("SELECT status, posted_invoice_id FROM accounting_outbox") == [("failed", 1)]


async def make_lost_draft(customer: Customer, ctx: Context, books: RunningSandbox) -> str:
    """Make a draft whose second search failed, until the time of the next attempt."""
    outbox_id = await customer.draft(ctx)
    await books.hold("accounting", "create_invoice")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await books.until_held("accounting")
    await books.misbehave("accounting", "down", operation="find_invoices")
    await books.release("accounting")
    assert await working is not None
    customer.tenant.api.clock.advance(seconds=30)
    return outbox_id


async def test_a_search_that_ignores_the_filter_is_not_believed(
    customer: Customer, ctx: Context, books: RunningSandbox
) -> None:
    outbox_id = await customer.draft(ctx)
    # The database of the accounting system compares without regard to case.
    await add_draft(books, f"svc:{outbox_id}".upper())
    assert await customer.work(ctx, outbox_id) is not None
    assert len(await list_invoices(books)) == 1


async def test_a_third_party_that_is_gone_fails_at_once(
    customer: Customer, ctx: Context, books: RunningSandbox, rival: Rival
) -> None:
    """The accounting system answers with 500 and SQL."""
    await rival.run("UPDATE accounting_customers SET thirdparty_id = 99")
    outbox_id = await customer.draft(ctx)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 1, None)
    assert (logs[-1]["reason"], await list_invoices(books)) == ("unknown_thirdparty", [])
    assert "llx_" not in str(logs)


async def test_nobody_validates_or_pays_an_invoice(customer: Customer, ctx: Context, books: RunningSandbox) -> None:
    outbox_id = await customer.draft(ctx)
    await customer.work(ctx, outbox_id)
    assert set(await list_operations(books)) == {"find_invoices", "create_invoice"}
    assert [draft["status"] for draft in await list_invoices(books)] == ["0"]
