"""Making a draft invoice: one for each payment, exactly what was paid, and never validated or paid."""

import asyncio
import datetime as dt
import json
from decimal import Decimal

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.accounting_stand_in import KEY, SQL, AccountingStandIn, Fault
from support.processes.fake_clock import FakeClock

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import LEASE

from .conftest import Customer

HALF_A_MINUTE = dt.timedelta(seconds=30)


async def test_a_draft_has_one_line_with_what_was_paid(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    outbox_id = await customer.draft(ctx)
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 1, 1)
    (post,) = [call for call in stand_in.calls if call.operation == "post"]
    date = post.body.pop("date")
    assert abs(date - ctx.clock.unix_s()) < 600
    assert post.body == {
        "socid": 7,
        "type": 0,
        "ref_ext": f"svc:{outbox_id}",
        "lines": [
            {
                "desc": "Codes Studio, 2026-11-20 to 2026-12-20",
                "qty": 1,
                "subprice": Decimal("8.86975"),
                "tva_tx": 19,
                "product_type": 1,
                "date_start": 1795132800,
                "date_end": 1797724800,
            }
        ],
    }
    assert stand_in.invoices[0]["total_ttc"] == "10.55500000"
    assert [call.operation for call in stand_in.calls] == ["search", "post", "search"]
    assert {call.headers["dolapientity"] for call in stand_in.calls} == {"3"}
    assert {call.headers["accept-encoding"] for call in stand_in.calls} == {"identity"}


async def test_a_completed_draft_is_left_alone(customer: Customer, ctx: Context, stand_in: AccountingStandIn) -> None:
    outbox_id = await customer.draft(ctx)
    for _ in range(3):
        assert await customer.work(ctx, outbox_id) is None
    assert len(stand_in.calls) == 3


async def test_eight_workers_at_once_make_one_invoice(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, rival: Rival
) -> None:
    ctx.clock.freeze()  # type: ignore[attr-defined]  # the tests' clock
    outbox_id = await customer.draft(ctx)
    async with rival.holding("SELECT 1 FROM accounting_outbox FOR UPDATE"):
        working = [asyncio.create_task(customer.work(ctx, outbox_id)) for _ in range(8)]
        await rival.until_someone_waits(8)
    ended = await asyncio.gather(*working)
    assert set(ended) <= {None, ctx.clock.now() + LEASE}
    assert len(stand_in.invoices) == stand_in.count("post") == 1
    assert await customer.read(outbox_id) == ("completed", 1, 1)


# What comes back in place of the answer to a post, and whether the draft is made all the same.
UNKNOWN: dict[Fault, bool] = {
    "dropped": False,
    "lost_answer": True,
    "half_body": True,
    "sql_error": False,
    "sql_error_after": True,
    "html": False,
    "forbidden_html": False,
    "nonsense": False,
    "oversized": False,
}


@pytest.mark.parametrize(("fault", "is_made"), UNKNOWN.items())
async def test_whatever_a_post_answers_there_is_one_invoice(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, fault: Fault, *, is_made: bool
) -> None:
    """After an unclear answer the accounting system is searched again, before any second post."""
    api = customer.tenant.api
    now = api.clock.freeze()
    outbox_id = await customer.draft(ctx)
    stand_in.faults["post"] = [fault]
    again_at = await customer.work(ctx, outbox_id)
    if is_made:
        assert (again_at, await customer.read(outbox_id)) == (None, ("completed", 1, 1))
    else:
        assert (again_at, await customer.read(outbox_id)) == (now + HALF_A_MINUTE, ("pending", 1, None))
        api.clock.advance(seconds=30)
        assert await customer.work(ctx, outbox_id) is None
    assert len(stand_in.invoices) == 1
    searches = [call.operation for call in stand_in.calls].index("post")
    assert searches == 1, "a search comes first"


@pytest.mark.parametrize("fault", [fault for fault in UNKNOWN if fault not in {"lost_answer", "sql_error_after"}])
async def test_without_a_search_nothing_is_posted(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, fault: Fault
) -> None:
    outbox_id = await customer.draft(ctx)
    stand_in.faults["search"] = [fault]
    assert await customer.work(ctx, outbox_id) is not None
    assert stand_in.count("post") == 0
    assert await customer.read(outbox_id) == ("pending", 1, None)


async def test_a_lost_second_search_is_made_up_for_by_the_next_attempt(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    stand_in.hold("post")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await stand_in.until_called("post")
    stand_in.faults["search"] = ["dropped"]
    stand_in.release()
    assert await working is not None
    clock.advance(seconds=30)
    assert await customer.work(ctx, outbox_id) is None
    assert stand_in.count("post") == 1
    assert await customer.read(outbox_id) == ("completed", 2, 1)


async def test_an_invoice_that_is_there_already_is_adopted(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    outbox_id = await customer.draft(ctx)
    stand_in.add_invoice(f"svc:{outbox_id}", socid=7, total="10.55500000", invoice_id=2**31 - 1)
    assert await customer.work(ctx, outbox_id) is None
    assert stand_in.count("post") == 0
    assert await customer.read(outbox_id) == ("completed", 1, 2**31 - 1)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([(7, "10.56000000")], "another_total"),
        ([(8, "10.55500000")], "another_thirdparty"),
        ([(7, "10.55500000"), (7, "10.55500000")], "several_invoices"),
    ],
)
async def test_what_only_a_person_can_put_right_fails_at_once(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, found: list[tuple[int, str]], reason: str
) -> None:
    """It is logged with the draft's id and the reason, and without amounts."""
    outbox_id = await customer.draft(ctx)
    for socid, total in found:
        stand_in.add_invoice(f"svc:{outbox_id}", socid=socid, total=total)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 1, None)
    assert stand_in.count("post") == 0
    (logged,) = [line for line in logs if line["event"] == "draft_invoice_failed"]
    assert (logged["log_level"], logged["outbox_id"], logged["reason"]) == ("error", outbox_id, reason)
    assert "10.5" not in str(logs)
    assert "10555" not in str(logs)


async def test_a_system_that_rounds_to_two_decimals_is_found_out(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    """The draft is there, with a total that nobody paid: a person sees it, and there is no second one."""
    stand_in.decimals = 2
    outbox_id = await customer.draft(ctx)
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 1, None)
    assert [invoice["total_ttc"] for invoice in stand_in.invoices] == ["10.56000000"]


async def test_a_draft_that_the_search_does_not_find_is_read_by_its_id(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    outbox_id = await customer.draft(ctx)
    stand_in.faults["search"] = ["empty_list"] * 9
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 1, 1)
    assert [call.operation for call in stand_in.calls] == ["search", "post", "search", "read"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"socid": "8"}, "another_thirdparty"),
        ({"total_ttc": "10.56000000"}, "another_total"),
        ({"ref_ext": "svc:acc_of-somebody-else"}, "another_reference"),
        ({"ref_ext": None}, "another_reference"),
    ],
)
async def test_an_invoice_that_is_read_must_be_the_draft(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, changes: dict[str, str | None], reason: str
) -> None:
    """A person changed it, or the settings name another accounting system: nothing is posted."""
    outbox_id = await make_lost_draft(customer, ctx, stand_in)
    stand_in.invoices[0].update(changes)
    with capture_logs() as logs:
        await customer.work(ctx, outbox_id)
    assert (logs[-1]["event"], logs[-1]["reason"]) == ("draft_invoice_failed", reason)
    assert stand_in.count("post") == 1


async def test_a_draft_that_was_deleted_is_made_again(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    """Only a 404 says so."""
    outbox_id = await make_lost_draft(customer, ctx, stand_in)
    stand_in.invoices.clear()
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("completed", 2, 1)
    assert [call.operation for call in stand_in.calls[-4:]] == ["search", "read", "post", "search"]


@pytest.mark.parametrize("fault", ["dropped", "sql_error", "html", "forbidden_html", "nonsense"])
async def test_while_an_earlier_draft_cannot_be_read_nothing_is_posted(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, fault: Fault
) -> None:
    outbox_id = await make_lost_draft(customer, ctx, stand_in)
    stand_in.faults["search"] = ["empty_list"]
    stand_in.faults["read"] = [fault]
    assert await customer.work(ctx, outbox_id) is not None
    assert await customer.read(outbox_id) == ("pending", 2, None)
    assert stand_in.count("post") == 1


async def test_a_draft_that_is_gone_as_soon_as_it_is_made_fails(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, rival: Rival
) -> None:
    """Neither the search nor the read finds it; the id is kept, so that even a retry asks before it posts."""
    outbox_id = await customer.draft(ctx)
    stand_in.hold("post")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await stand_in.until_called("post")
    stand_in.invoices.clear()
    stand_in.release()
    with capture_logs() as logs:
        assert await working is None
    assert logs[-1]["reason"] == "not_found_after_post"
    assert await rival.rows("SELECT status, posted_invoice_id FROM accounting_outbox") == [("failed", 1)]


async def make_lost_draft(customer: Customer, ctx: Context, stand_in: AccountingStandIn) -> str:
    """Make a draft whose second search failed, until the time of the next attempt; that search finds nothing."""
    outbox_id = await customer.draft(ctx)
    stand_in.hold("post")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await stand_in.until_called("post")
    stand_in.faults["search"] = ["dropped", "empty_list"]
    stand_in.release()
    assert await working is not None
    customer.tenant.api.clock.advance(seconds=30)
    return outbox_id


async def test_a_search_that_ignores_the_filter_is_not_believed(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    outbox_id = await customer.draft(ctx)
    # The database of the accounting system compares without regard to case.
    stand_in.add_invoice(f"svc:{outbox_id}".upper(), socid=7, total="10.55500000")
    assert await customer.work(ctx, outbox_id) is not None
    assert stand_in.count("post") == 0


async def test_a_third_party_that_is_gone_fails_at_once(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    """The accounting system answers with 500 and SQL."""
    stand_in.thirdparties.clear()
    outbox_id = await customer.draft(ctx)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 1, None)
    assert logs[-1]["reason"] == "unknown_thirdparty"
    assert SQL not in str(logs)


async def test_nobody_validates_or_pays_an_invoice(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, api: Api
) -> None:
    outbox_id = await customer.draft(ctx)
    await customer.work(ctx, outbox_id)
    assert {call.operation for call in stand_in.calls} == {"search", "post"}
    assert stand_in.invoices[0]["status"] == "0"
    assert KEY not in json.dumps([call.query for call in stand_in.calls])
    assert api is not None, "the shared Core is not asked"
