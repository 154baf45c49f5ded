"""Processes that are killed in each phase of making a checkout; the same request, sent again, resumes it.

A process is killed while it waits: for a lock of the test's own, or for the provider's stand-in.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from support.api.core_client import Answer
from support.billing.card_purchase import list_keys, list_sessions
from support.billing.local_purchase import list_payments
from support.billing.offers import CARD_OFFER, LOCAL_OFFER, make_card_offer, make_local_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.processes.killable import OPERATOR, Doomed, Killable, until_alone
from support.tenancy.tenant import Tenant

from soundmark.core.features.billing.checkouts import service

PATH = "/v1/billing/checkouts"
HEADERS = {"Idempotency-Key": "purchase-of-november"}
CHECKOUT = "SELECT FROM checkouts FOR UPDATE"


@dataclass(frozen=True)
class Buying:
    """A purchase that is sent to a Core that will be killed, and then to another one."""

    tenant: Tenant
    rival: Rival
    core: Doomed

    def lose(self, offer_id: str = CARD_OFFER) -> None:
        """Send the request, whose answer must be lost."""
        self.core.lose("POST", PATH, params=self.tenant.query, json={"offer_id": offer_id}, headers=OPERATOR | HEADERS)

    async def kill(self) -> None:
        self.core.kill()
        await until_alone(self.rival)

    async def statuses(self) -> list[str]:
        return [status for (status,) in await self.rival.rows("SELECT status FROM checkouts ORDER BY created_at")]

    async def repeat(self, offer_id: str = CARD_OFFER) -> Answer:
        """Send the same request to the shared Core."""
        return await self.tenant.api.post(PATH, params=self.tenant.query, json={"offer_id": offer_id}, headers=HEADERS)


@pytest.fixture
async def buying(tenant: Tenant, rival: Rival, killable: Killable) -> AsyncIterator[Buying]:
    """A purchase at a Core that will be killed."""
    async with killable.core() as core:
        yield Buying(tenant, rival, core)


@pytest.fixture
async def by_card(buying: Buying, rival: Rival, card: RunningSandbox) -> AsyncIterator[None]:
    """A card offer for sale; at the end there is one checkout, one session, and one answer for its key."""
    await make_card_offer(rival)
    yield
    first, second = await buying.repeat(), await buying.repeat()
    assert (first.status, first.body) == (201, second.body)
    assert (await buying.statuses(), len(await list_sessions(card))) == (["pending"], 1)


def test_every_phase_has_a_case() -> None:
    phases = re.findall(r"^(\d)\. ", service.__doc__ or "", re.MULTILINE)
    assert phases == ["1", "2", "3"]


@pytest.mark.usefixtures("by_card")
async def test_a_process_that_dies_in_phase_1_leaves_nothing(
    buying: Buying, rival: Rival, card: RunningSandbox
) -> None:
    async with buying.core.dying_while(rival, "SELECT FROM code_entitlements FOR UPDATE"):
        buying.lose()

    assert (await buying.statuses(), await card.calls("card")) == ([], [])


@pytest.mark.usefixtures("by_card")
async def test_a_process_that_dies_before_the_provider_works_is_resumed(buying: Buying, card: RunningSandbox) -> None:
    await card.misbehave("card", "held")
    buying.lose()
    await card.until_held("card")
    await buying.kill()

    assert (await buying.statuses(), await list_sessions(card)) == (["pending"], [])


@pytest.mark.usefixtures("by_card")
async def test_a_process_that_dies_before_the_provider_has_answered_gets_the_same_session(
    buying: Buying, card: RunningSandbox
) -> None:
    await card.hold("card")
    buying.lose()
    await card.until_held("card")
    await buying.kill()

    assert (await buying.statuses(), len(await list_sessions(card))) == (["pending"], 1)


@pytest.mark.usefixtures("by_card")
async def test_a_process_that_dies_between_two_attempts_leaves_the_stored_failure_behind_again(
    buying: Buying, rival: Rival, card: RunningSandbox
) -> None:
    await card.misbehave("card", "held_error")
    buying.lose()
    await card.until_held("card")
    async with buying.core.dying_while(rival, CHECKOUT):
        await card.release("card")

    assert (await buying.statuses(), await list_sessions(card)) == (["pending"], [])


@pytest.mark.usefixtures("by_card")
async def test_a_process_that_dies_on_the_second_attempt_goes_on_with_it(buying: Buying, card: RunningSandbox) -> None:
    """The attempt was counted before its key was used, so the resumption does not begin a third one."""
    await card.misbehave("card", "server_error")
    await card.hold("card")
    buying.lose()
    await card.until_held("card")
    await buying.kill()

    assert (await buying.statuses(), {key[-2:] for key in await list_keys(card)}) == (["pending"], {"-1", "-2"})


@pytest.mark.usefixtures("by_card")
async def test_a_process_that_dies_in_phase_3_gets_the_same_session(
    buying: Buying, rival: Rival, card: RunningSandbox
) -> None:
    await card.hold("card")
    buying.lose()
    await card.until_held("card")
    async with buying.core.dying_while(rival, CHECKOUT):
        await card.release("card")

    assert (await buying.statuses(), len(await list_sessions(card))) == (["pending"], 1)


async def test_a_local_checkout_whose_process_dies_fails_and_never_has_a_second_page(
    buying: Buying, rival: Rival, local: RunningSandbox, clock: FakeClock
) -> None:
    await make_local_offer(rival)
    await local.hold("local")
    buying.lose(LOCAL_OFFER)
    await local.until_held("local")
    await buying.kill()
    assert await buying.statuses() == ["pending"]
    clock.advance(seconds=20)  # The other Core would wait that long for the first one's page.

    resumed = await buying.repeat(LOCAL_OFFER)

    assert (resumed.code, await buying.statuses()) == ("payment_provider_unavailable", ["failed"])
    assert len(await list_payments(local)) == 1
