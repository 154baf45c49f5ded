"""Receipts of issuances are deleted after a day, for every tenant."""

from collections.abc import AsyncIterator

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import make_tenant

from soundmark.core.context import Context
from soundmark.core.features.codes.issuance import jobs
from soundmark.kit.crypto.secret import Secret


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    async with make_worker(database_url, clock) as context:
        yield context


async def make_receipt(api: Api, name: str) -> None:
    tenant = await make_tenant(api)
    body = tenant.code_body(expires_at="2999-01-01T00:00:00Z")
    answer = await api.post("/v1/codes", json=body, headers={"Idempotency-Key": name * 16})
    assert answer.status == 201, answer.body


async def test_only_what_is_older_than_a_day_is_forgotten(api: Api, rival: Rival, ctx: Context) -> None:
    api.clock.freeze()
    await make_receipt(api, "a")
    await make_receipt(api, "b")
    api.clock.advance(hours=12)
    await make_receipt(api, "c")
    assert await jobs.forget_receipts(ctx) == 0
    api.clock.advance(hours=12, milliseconds=1)
    codes = await rival.rows("SELECT xr_id FROM codes ORDER BY xr_id")

    assert await jobs.forget_receipts(ctx) == 2

    assert len(await rival.rows("SELECT 1 FROM issuance_receipts")) == 1
    assert await rival.rows("SELECT xr_id FROM codes ORDER BY xr_id") == codes
    assert await jobs.forget_receipts(ctx) == 0


async def test_many_are_forgotten_in_bounded_steps(
    api: Api, rival: Rival, ctx: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_AT_ONCE", 2)
    for name in "abcde":
        await make_receipt(api, name)
    api.clock.advance(hours=25)
    assert await jobs.forget_receipts(ctx) == 5
    assert await rival.rows("SELECT 1 FROM issuance_receipts") == []


async def test_a_receipt_that_is_being_replaced_is_left_alone(api: Api, rival: Rival, ctx: Context) -> None:
    """Deleting receipts never waits for an issuance."""
    await make_receipt(api, "a")
    api.clock.advance(hours=25)
    async with rival.holding("SELECT 1 FROM issuance_receipts FOR UPDATE"):
        assert await jobs.forget_receipts(ctx) == 0
    assert await jobs.forget_receipts(ctx) == 1
