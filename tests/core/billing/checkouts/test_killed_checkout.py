"""Processes that are killed in each phase of making a checkout; the same request, sent again, resumes it.

A process is killed while it waits: for a lock of the test's own, or for the provider's stand-in.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import httpx2
import pytest
from support.api.core_client import Answer
from support.api.core_settings import OPERATOR_TOKEN
from support.billing.card_purchase import list_keys, list_sessions
from support.billing.local_purchase import list_payments
from support.billing.offers import CARD_OFFER, LOCAL_OFFER, make_card_offer, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.command_server import ForkedCommand
from support.processes.fake_clock import FakeClock
from support.processes.killable import running_core, until_alone
from support.tenancy.tenant import Tenant

from soundmark.core.features.billing.checkouts import service
from soundmark.kit.crypto.secret import Secret

PATH = "/v1/billing/checkouts"
HEADERS = {"Idempotency-Key": "purchase-of-november"}
CHECKOUT = "SELECT FROM checkouts FOR UPDATE"


@dataclass
class Doomed:
    """A Core that will be killed, and what it must leave behind."""

    tenant: Tenant
    rival: Rival
    url: str
    process: ForkedCommand

    def buy(self, offer_id: str) -> asyncio.Task[None]:
        """Send the request, whose answer must be lost."""
        return asyncio.create_task(self._buy(offer_id))

    async def _buy(self, offer_id: str) -> None:
        headers = {**HEADERS, "Authorization": f"Bearer {OPERATOR_TOKEN}"}
        async with httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60) as client:
            with pytest.raises(httpx2.HTTPError):
                await client.post(PATH, params=self.tenant.query, json={"offer_id": offer_id})

    async def kill(self, buying: asyncio.Task[None]) -> None:
        self.process.kill()
        await buying
        await until_alone(self.rival)

    async def statuses(self) -> list[str]:
        return [status for (status,) in await self.rival.rows("SELECT status FROM checkouts ORDER BY created_at")]

    async def repeat(self, offer_id: str = CARD_OFFER) -> Answer:
        """Send the same request to another Core."""
        return await self.tenant.api.post(PATH, params=self.tenant.query, json={"offer_id": offer_id}, headers=HEADERS)


@pytest.fixture
def core(
    tenant: Tenant, rival: Rival, database_url: Secret, measuring_url: str, outside_urls: dict[str, str]
) -> Iterator[Doomed]:
    with running_core(database_url, measuring_url, **outside_urls) as (url, process):
        yield Doomed(tenant, rival, url, process)


@pytest.fixture
async def buying(core: Doomed, rival: Rival, card: RunningSandbox) -> AsyncIterator[None]:
    """A card offer for sale; at the end there is one checkout, one session, and one answer for its key."""
    await make_card_offer(rival)
    yield
    first, second = await core.repeat(), await core.repeat()
    assert (first.status, first.body) == (201, second.body)
    assert (await core.statuses(), len(await list_sessions(card))) == (["pending"], 1)


def test_every_phase_has_a_case() -> None:
    phases = re.findall(r"^(\d)\. ", service.__doc__ or "", re.MULTILINE)
    assert phases == ["1", "2", "3"]


@pytest.mark.usefixtures("buying")
async def test_a_process_that_dies_in_phase_1_leaves_nothing(core: Doomed, rival: Rival, card: RunningSandbox) -> None:
    async with rival.holding("SELECT FROM code_entitlements FOR UPDATE"):
        buying = core.buy(CARD_OFFER)
        await rival.until_someone_waits()
        core.process.kill()
        await buying
    await until_alone(rival)

    assert (await core.statuses(), await card.calls("card")) == ([], [])


@pytest.mark.usefixtures("buying")
async def test_a_process_that_dies_before_the_provider_works_is_resumed(core: Doomed, card: RunningSandbox) -> None:
    await card.misbehave("card", "held")
    buying = core.buy(CARD_OFFER)
    await card.until_held("card")
    await core.kill(buying)

    assert (await core.statuses(), await list_sessions(card)) == (["pending"], [])


@pytest.mark.usefixtures("buying")
async def test_a_process_that_dies_before_the_provider_has_answered_gets_the_same_session(
    core: Doomed, card: RunningSandbox
) -> None:
    await card.hold("card")
    buying = core.buy(CARD_OFFER)
    await card.until_held("card")
    await core.kill(buying)

    assert (await core.statuses(), len(await list_sessions(card))) == (["pending"], 1)


@pytest.mark.usefixtures("buying")
async def test_a_process_that_dies_between_two_attempts_leaves_the_stored_failure_behind_again(
    core: Doomed, rival: Rival, card: RunningSandbox
) -> None:
    await card.misbehave("card", "held_error")
    buying = core.buy(CARD_OFFER)
    await card.until_held("card")
    async with rival.holding(CHECKOUT):
        await card.release("card")
        await rival.until_someone_waits()
        core.process.kill()
        await buying
    await until_alone(rival)

    assert (await core.statuses(), await list_sessions(card)) == (["pending"], [])


@pytest.mark.usefixtures("buying")
async def test_a_process_that_dies_on_the_second_attempt_goes_on_with_it(core: Doomed, card: RunningSandbox) -> None:
    """The attempt was counted before its key was used, so the resumption does not begin a third one."""
    await card.misbehave("card", "server_error")
    await card.hold("card")
    buying = core.buy(CARD_OFFER)
    await card.until_held("card")
    await core.kill(buying)

    assert (await core.statuses(), {key[-2:] for key in await list_keys(card)}) == (["pending"], {"-1", "-2"})


@pytest.mark.usefixtures("buying")
async def test_a_process_that_dies_in_phase_3_gets_the_same_session(
    core: Doomed, rival: Rival, card: RunningSandbox
) -> None:
    await card.hold("card")
    buying = core.buy(CARD_OFFER)
    await card.until_held("card")
    async with rival.holding(CHECKOUT):
        await card.release("card")
        await rival.until_someone_waits()
        core.process.kill()
        await buying
    await until_alone(rival)

    assert (await core.statuses(), len(await list_sessions(card))) == (["pending"], 1)


async def test_a_local_checkout_whose_process_dies_fails_and_never_has_a_second_page(
    core: Doomed, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    await make_local_offer(rival)
    await local.hold("local")
    buying = core.buy(LOCAL_OFFER)
    await local.until_held("local")
    await core.kill(buying)
    assert await core.statuses() == ["pending"]
    clock.advance(seconds=20)  # The other Core would wait that long for the first one's page.

    resumed = await core.repeat(LOCAL_OFFER)

    assert (resumed.code, await core.statuses()) == ("payment_provider_unavailable", ["failed"])
    assert len(await list_payments(local)) == 1
