"""Making a draft invoice: one for each payment, exactly what was paid, and never validated or paid."""

import asyncio
import datetime as dt
import json
from decimal import Decimal

import pytest
from structlog.testing import capture_logs
from support.accounting_stand_in import KEY, SQL, AccountingStandIn, Fault, Operation
from support.core_client import Api
from support.fake_clock import FakeClock
from support.rival import Rival

from soundmark.core.context import Context
from soundmark.core.domain.billing.accounting import ATTEMPT_MAX, LEASE, TRIED_FOR
from soundmark.core.features.billing.accounting import jobs
from soundmark.core.providers.dolibarr import client
from soundmark.kit.crypto.secret import Secret

from .conftest import Customer, environ_of, make_worker

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


async def test_a_search_that_never_finds_anything_leads_to_one_invoice(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn
) -> None:
    """The answer named the new draft and the search does not find it: another attempt would make another draft."""
    outbox_id = await customer.draft(ctx)
    stand_in.faults["search"] = ["empty_list"] * 9
    assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 1, None)
    assert stand_in.count("post") == 1


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


async def test_a_wrong_key_is_tried_again_and_not_logged(
    customer: Customer, stand_in: AccountingStandIn, database_url: Secret, clock: FakeClock
) -> None:
    environ = environ_of(stand_in) | {"ACCOUNTING_API_KEY": "a-wrong-key-Ü"}
    async with make_worker(database_url, clock, **environ) as ctx:
        outbox_id = await customer.draft(ctx)
        with capture_logs() as logs:
            assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "unusable_key"
    assert "a-wrong-key" not in str(logs)
    async with make_worker(database_url, clock, **environ | {"ACCOUNTING_API_KEY": "a-wrong-key"}) as ctx:
        clock.advance(seconds=30)
        with capture_logs() as logs:
            assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "status_401"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ACCOUNTING_BASE_URL": ""}, "not_configured"),
        ({"ACCOUNTING_API_KEY": ""}, "not_configured"),
        ({"ACCOUNTING_TVA_RATE": ""}, "not_configured"),
        ({"ACCOUNTING_ENABLE_INVOICE_SYNC": "false"}, "switched_off"),
        ({"ACCOUNTING_CURRENCY": "EUR"}, "another_currency"),
    ],
)
async def test_a_draft_waits_for_its_settings(
    customer: Customer,
    ctx: Context,
    stand_in: AccountingStandIn,
    database_url: Secret,
    clock: FakeClock,
    changes: dict[str, str],
    reason: str,
) -> None:
    outbox_id = await customer.draft(ctx)
    async with make_worker(database_url, clock, **environ_of(stand_in) | changes) as lacking:
        with capture_logs() as logs:
            assert await customer.work(lacking, outbox_id) is not None
    assert (await customer.read(outbox_id))[0] == "pending"
    assert (logs[-1]["reason"], stand_in.calls) == (reason, [])
    clock.advance(seconds=30)
    assert await customer.work(ctx, outbox_id) is None
    assert (await customer.read(outbox_id))[0] == "completed"


async def test_a_draft_without_a_third_party_waits(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, rival: Rival
) -> None:
    outbox_id = await customer.draft(ctx)
    await rival.run("DELETE FROM accounting_customers")
    assert await customer.work(ctx, outbox_id) is not None
    assert stand_in.calls == []


async def test_the_rate_of_tax_is_exact(
    customer: Customer, stand_in: AccountingStandIn, database_url: Secret, clock: FakeClock
) -> None:
    """7.1 is no binary fraction."""
    async with make_worker(database_url, clock, **environ_of(stand_in) | {"ACCOUNTING_TVA_RATE": "7.1"}) as ctx:
        outbox_id = await customer.draft(ctx)
        assert await customer.work(ctx, outbox_id) is None
    (post,) = [call for call in stand_in.calls if call.operation == "post"]
    assert post.body["lines"][0]["tva_tx"] == Decimal("7.1")
    assert (await customer.read(outbox_id))[0] == "completed"


async def test_a_draft_is_tried_for_a_day_and_then_fails(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, clock: FakeClock
) -> None:
    began_at = clock.freeze()
    outbox_id = await customer.draft(ctx)
    stand_in.faults["search"] = ["html"] * 100
    again_at: dt.datetime | None = began_at
    pauses = []
    for _ in range(100):
        again_at = await customer.work(ctx, outbox_id)
        if again_at is None:
            break
        pauses.append((again_at - clock.now()).total_seconds())
        clock.advance(seconds=pauses[-1], milliseconds=-1)
        assert await customer.work(ctx, outbox_id) == again_at, "too early"
        clock.advance(milliseconds=1)
    assert pauses[:8] == [30, 60, 120, 240, 480, 960, 1920, 3600]
    assert set(pauses[7:]) == {3600}
    assert TRIED_FOR - dt.timedelta(hours=1) <= clock.now() - began_at <= TRIED_FOR
    status, attempts, _ = await customer.read(outbox_id)
    assert (status, attempts, stand_in.count("search")) == ("failed", len(pauses) + 1, len(pauses) + 1)


async def test_an_accounting_system_that_hangs_is_left_before_the_lease_ends(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ATTEMPT_MAX.total_seconds() > 4 * client._TIMEOUT_S
    monkeypatch.setattr(client, "_TIMEOUT_S", 0.2)
    stand_in.hold("search")
    outbox_id = await customer.draft(ctx)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "deadline"
    monkeypatch.setattr(client, "_TIMEOUT_S", 60)
    monkeypatch.setattr(jobs, "ATTEMPT_MAX", dt.timedelta(seconds=0.2))
    customer.tenant.api.clock.advance(seconds=30)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is not None
    assert logs[-1]["reason"] == "TimeoutError"


async def test_nothing_is_posted_after_the_lease(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, clock: FakeClock
) -> None:
    """The worker's machine slept: another worker may be at the draft already."""
    outbox_id = await customer.draft(ctx)
    stand_in.hold("search")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await stand_in.until_called("search")
    clock.advance(seconds=LEASE.total_seconds())
    assert await customer.read(outbox_id) == ("processing", 1, None)
    stand_in.release()
    assert await customer.work(ctx, outbox_id) is None
    assert await working is None
    assert stand_in.count("post") == 1
    assert await customer.read(outbox_id) == ("completed", 2, 1)


async def test_a_result_that_comes_too_late_changes_nothing(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    stand_in.hold("post")
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await stand_in.until_called("post")
    clock.advance(seconds=LEASE.total_seconds())
    assert await customer.work(ctx, outbox_id) is None
    stand_in.invoices.clear()
    stand_in.release()
    assert await working is None
    assert await customer.read(outbox_id) == ("completed", 2, 1)


async def test_a_worker_that_dies_at_every_attempt_ends_after_a_day(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, rival: Rival, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    await rival.run("UPDATE accounting_outbox SET status = 'processing', attempts = 9")
    clock.advance(days=1)
    with capture_logs() as logs:
        assert await customer.work(ctx, outbox_id) is None
    assert await customer.read(outbox_id) == ("failed", 9, None)
    assert (logs[-1]["event"], logs[-1]["reason"], stand_in.calls) == ("draft_invoice_failed", "worker_killed", [])


async def test_a_worker_that_was_off_for_days_still_tries(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, clock: FakeClock
) -> None:
    outbox_id = await customer.draft(ctx)
    clock.advance(days=3)
    assert await customer.work(ctx, outbox_id) is None
    assert (await customer.read(outbox_id), len(stand_in.invoices)) == (("completed", 1, 1), 1)


@pytest.mark.parametrize("operation", ["search", "post"])
async def test_an_organisation_that_is_deleted_while_its_invoice_is_made(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, operation: Operation, rival: Rival
) -> None:
    """Neither waits for the other, and nothing of the organisation comes back."""
    outbox_id = await customer.draft(ctx)
    stand_in.hold(operation)
    working = asyncio.create_task(customer.work(ctx, outbox_id))
    await stand_in.until_called(operation)
    organization_id = customer.tenant.organization_id
    # A live subscription of a provider may keep an organisation from being deleted.
    await rival.run("UPDATE subscriptions SET status = 'expired'")
    body = {"confirmation": organization_id}
    assert (await customer.tenant.api.call("DELETE", f"/v1/organizations/{organization_id}", json=body)).status == 204
    stand_in.release()
    with capture_logs() as logs:
        assert await working is None
    assert (logs[-1]["status"], logs[-1]["is_recorded"]) == ("completed", False)
    assert await rival.rows("SELECT count(*) FROM accounting_outbox") == [(0,)]
    assert await customer.work(ctx, outbox_id) is None
    assert len(stand_in.invoices) == 1


async def test_nobody_validates_or_pays_an_invoice(
    customer: Customer, ctx: Context, stand_in: AccountingStandIn, api: Api
) -> None:
    outbox_id = await customer.draft(ctx)
    await customer.work(ctx, outbox_id)
    assert {call.operation for call in stand_in.calls} == {"search", "post"}
    assert stand_in.invoices[0]["status"] == "0"
    assert KEY not in json.dumps([call.query for call in stand_in.calls])
    assert api is not None, "the shared Core is not asked"
