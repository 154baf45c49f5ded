"""The limits of mail sent in our name: five a day to one address, a hundred a day for one organisation."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.mail_server import MailServer, configure_mail, running_mail_server
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.features.tenancy.invitations import jobs
from soundmark.kit.crypto.secret import Secret

TO_ADDRESS, OF_ORGANIZATION = 5, 100
WAITING, NONE = "pending", "unavailable"


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    """A server that the code under test calls."""
    async with running_mail_server() as running:
        yield running


@pytest.fixture
async def tenant(api: Api, server: MailServer) -> Tenant:
    """An organisation with one project."""
    await configure_mail(api, server)
    # Midday, so that no test crosses the end of a day.
    api.clock.frozen_at = api.clock.now().replace(hour=12, minute=0, second=0, microsecond=0)
    return await make_tenant(api)


async def invited(tenant: Tenant, count: int, email: str = "ada@example.org") -> list[str]:
    """Invite so many times and return the delivery status of each invitation."""
    return [(await tenant.make_invitation(email=email))["delivery_status"] for _ in range(count)]


async def counts(rival: Rival) -> list[int]:
    return sorted(count for (count,) in await rival.rows("SELECT mails_count FROM mail_counts"))


async def test_the_sixth_invitation_to_one_address_is_created_but_not_mailed(tenant: Tenant, rival: Rival) -> None:
    assert await invited(tenant, TO_ADDRESS + 1) == [WAITING] * TO_ADDRESS + [NONE]

    sealed = await rival.rows("SELECT count(*) FROM invitations WHERE sealed_secret IS NOT NULL")
    deferred = await rival.rows("SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'deliver_invitation'")
    assert (sealed, deferred) == ([(TO_ADDRESS,)], [(TO_ADDRESS,)])
    assert await invited(tenant, 1, "eva@example.org") == [WAITING]


@pytest.mark.parametrize("spelling", ["ADA@Example.org", "Ada@EXAMPLE.ORG"])
async def test_every_spelling_of_an_address_is_the_same_address(tenant: Tenant, spelling: str) -> None:
    await invited(tenant, TO_ADDRESS)

    assert await invited(tenant, 1, spelling) == [NONE]


async def test_letters_beyond_ascii_are_other_addresses(tenant: Tenant) -> None:
    await invited(tenant, TO_ADDRESS, "ärger@exämple.org")

    assert await invited(tenant, 1, "ärGER@xn--exmple-cua.org") == [NONE]
    assert await invited(tenant, 1, "Ärger@exämple.org") == [WAITING]


async def test_organisations_share_the_limit_of_an_address(api: Api, tenant: Tenant) -> None:
    """Otherwise a caller who has used it up would create another organisation."""
    await invited(tenant, TO_ADDRESS)

    assert await invited(await make_tenant(api), 1) == [NONE]


async def test_a_revoked_invitations_mail_counts(tenant: Tenant) -> None:
    for _ in range(TO_ADDRESS):
        invitation = await tenant.make_invitation()
        path = f"/v1/member-invitations/{invitation['id']}/revoke"
        assert (await tenant.api.post(path, params=tenant.query)).status == 200

    assert await invited(tenant, 1) == [NONE]


async def test_the_mails_of_a_deleted_organisation_count(api: Api, tenant: Tenant, rival: Rival) -> None:
    await invited(tenant, TO_ADDRESS)
    await rival.run("DELETE FROM organizations WHERE id = %s", tenant.organization_id)

    assert await invited(await make_tenant(api), 1) == [NONE]


async def test_an_organisation_mails_a_hundred_times_a_day(api: Api, tenant: Tenant, rival: Rival) -> None:
    addresses = [f"member{number}@example.org" for number in range(OF_ORGANIZATION)]
    statuses = [(await invited(tenant, 1, email))[0] for email in addresses]

    assert statuses == [WAITING] * OF_ORGANIZATION
    assert await invited(tenant, 2, "one-more@example.org") == [NONE] * 2
    assert await invited(await make_tenant(api), 1, "one-more@example.org") == [WAITING]
    assert (await counts(rival))[-1] == OF_ORGANIZATION


async def test_an_invitation_without_mail_uses_up_nothing(tenant: Tenant, rival: Rival) -> None:
    """Neither count changes, whichever of them is exhausted."""
    await invited(tenant, 3 * TO_ADDRESS)

    assert await counts(rival) == [TO_ADDRESS, TO_ADDRESS]


async def test_without_a_mail_server_nothing_is_counted(api: Api, rival: Rival) -> None:
    tenant = await make_tenant(api)

    assert await invited(tenant, TO_ADDRESS + 1) == [NONE] * (TO_ADDRESS + 1)
    assert await counts(rival) == []


async def test_a_new_day_begins_at_midnight_utc(api: Api, tenant: Tenant) -> None:
    await invited(tenant, TO_ADDRESS)
    assert api.clock.frozen_at is not None
    api.clock.frozen_at = api.clock.frozen_at.replace(hour=23, minute=59, second=59)
    assert await invited(tenant, 1) == [NONE]
    api.clock.frozen_at += timedelta(seconds=1)

    assert await invited(tenant, TO_ADDRESS + 1) == [WAITING] * TO_ADDRESS + [NONE]


async def test_ten_invitations_of_one_address_at_once_are_five_mails(tenant: Tenant) -> None:
    answers = await asyncio.gather(*(tenant.make_invitation() for _ in range(10)))

    assert Counter(answer["delivery_status"] for answer in answers) == {WAITING: TO_ADDRESS, NONE: 10 - TO_ADDRESS}


async def test_two_organisations_at_once_wait_for_each_others_count(api: Api, tenant: Tenant, rival: Rival) -> None:
    """The fifth mail is under way and not committed: the next request waits for its outcome."""
    await invited(tenant, TO_ADDRESS - 1)
    other = await make_tenant(api)
    async with rival.holding("LOCK TABLE audit_entries IN ACCESS EXCLUSIVE MODE"):
        one = await rival.while_waiting(tenant.make_invitation())
        second = asyncio.create_task(other.make_invitation())
        await rival.until_someone_waits(2)
    answers = await asyncio.gather(one, second)

    assert [answer["delivery_status"] for answer in answers] == [WAITING, NONE]


async def test_a_core_that_dies_before_its_commit_has_counted_nothing(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE audit_entries IN ACCESS EXCLUSIVE MODE"):
        inviting: Any = await rival.while_waiting(
            tenant.api.post("/v1/member-invitations", json=tenant.invitation_body())
        )
        await rival.kill_waiting_sessions()
        assert (await inviting).status == 503

    assert await counts(rival) == []


async def test_a_mail_that_is_tried_again_counts_once(
    tenant: Tenant, rival: Rival, server: MailServer, database_url: Secret, clock: FakeClock
) -> None:
    server.replies["RCPT"] = "451 busy"
    invitation = await tenant.make_invitation()
    async with make_worker(database_url, clock) as ctx:
        for _ in range(3):
            with pytest.raises(jobs.Later):
                await jobs.deliver(ctx, organization_id=tenant.organization_id, invitation_id=invitation["id"])
            clock.advance(hours=1)

    assert await counts(rival) == [1, 1]


async def test_a_count_does_not_reveal_an_address(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_invitation()
    digests = [bytes(counted) for (counted,) in await rival.rows("SELECT counted FROM mail_counts")]

    assert [len(digest) for digest in digests] == [32, 32]
    guesses = ("ada@example.org", "address\0ada\0example.org", f"organization\0{tenant.organization_id}")
    assert not {hashlib.sha256(guess.encode()).digest() for guess in guesses} & set(digests)


async def test_the_counts_of_past_days_are_deleted(
    api: Api, tenant: Tenant, rival: Rival, database_url: Secret, clock: FakeClock
) -> None:
    """Except yesterday's, which a process whose clock is behind may still count in."""
    async with make_worker(database_url, clock) as ctx:
        await invited(tenant, 1)
        api.clock.advance(days=1)
        await invited(tenant, 2)
        assert await jobs.forget_mail_counts(ctx) == 0
        api.clock.advance(days=1)
        assert await jobs.forget_mail_counts(ctx) == 2

    assert await counts(rival) == [2, 2]
