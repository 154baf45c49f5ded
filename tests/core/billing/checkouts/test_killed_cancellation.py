"""Processes that are killed in each phase of giving up a checkout; the same request, sent again, ends it."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from support.billing.card_purchase import list_sessions
from support.billing.offers import CARD_OFFER, make_card_offer
from support.database.rival import Rival
from support.outside.running_sandbox import RunningSandbox
from support.processes.killable import Doomed, Killable, until_alone
from support.tenancy.tenant import Tenant

from soundmark.core.features.billing.checkouts import cancellation

PATH = "/v1/billing/checkouts"
CHECKOUT = "SELECT FROM checkouts FOR UPDATE"


@dataclass(frozen=True)
class GivingUp:
    """A checkout that is given up at a Core that will be killed."""

    path: str
    tenant: Tenant
    rival: Rival
    card: RunningSandbox
    core: Doomed

    def lose(self) -> None:
        """Send the request, whose answer must be lost."""
        self.core.lose("POST", self.path, params=self.tenant.query)

    async def states(self) -> tuple[str, str]:
        """Return the status of the checkout and that of its session."""
        ((status,),) = await self.rival.rows("SELECT status FROM checkouts")
        (session,) = await list_sessions(self.card)
        return status, session["status"]


@pytest.fixture
async def giving_up(tenant: Tenant, rival: Rival, card: RunningSandbox, killable: Killable) -> AsyncIterator[GivingUp]:
    """A checkout with a page; at the end, the repeated request ends it, once."""
    await make_card_offer(rival)
    made = await tenant.api.post(PATH, params=tenant.query, json={"offer_id": CARD_OFFER})
    path = f"{PATH}/{made.json['id']}/cancel"
    async with killable.core() as core:
        giving_up = GivingUp(path, tenant, rival, card, core)
        yield giving_up
    repeated = await tenant.api.post(path, params=tenant.query)
    assert (repeated.status, repeated.json["status"]) == (200, "expired")
    assert await giving_up.states() == ("expired", "expired")
    assert len(await rival.audited("billing.checkout_cancelled")) == 1


def test_every_phase_has_a_case() -> None:
    assert re.findall(r"^(\d)\. ", cancellation.__doc__ or "", re.MULTILINE) == ["1", "2", "3"]


async def test_a_process_that_dies_in_phase_1_leaves_the_page_open(giving_up: GivingUp, rival: Rival) -> None:
    async with giving_up.core.dying_while(rival, CHECKOUT):
        giving_up.lose()

    assert await giving_up.states() == ("pending", "open")


async def test_a_process_that_dies_before_the_provider_has_answered_leaves_a_closed_page(
    giving_up: GivingUp, rival: Rival, card: RunningSandbox
) -> None:
    await card.hold("card", "expire_session")
    giving_up.lose()
    await card.until_held("card")
    giving_up.core.kill()
    await until_alone(rival)

    assert await giving_up.states() == ("pending", "expired")


async def test_a_process_that_dies_in_phase_3_leaves_a_closed_page(
    giving_up: GivingUp, rival: Rival, card: RunningSandbox
) -> None:
    await card.hold("card", "expire_session")
    giving_up.lose()
    await card.until_held("card")
    async with giving_up.core.dying_while(rival, CHECKOUT):
        await card.release("card")

    assert await giving_up.states() == ("pending", "expired")
