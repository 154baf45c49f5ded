"""The mails that tell owners of a suspension and of its end."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.mail_server import configure_mail, running_mail_server
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.people import People
from support.tenancy.suspension import REASON, restore, suspend

from soundmark.core.context import Context
from soundmark.core.features.platform.organizations import jobs
from soundmark.kit.crypto.secret import Secret

QUEUED = "SELECT args - 'traceparent' FROM procrastinate_jobs WHERE task_name = %s ORDER BY id"


@pytest.fixture
async def work(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    """The context of Core's worker."""
    async with make_worker(database_url, clock) as ctx:
        yield ctx


async def queued(rival: Rival, task: str) -> list[dict[str, str]]:
    return [args for (args,) in await rival.rows(QUEUED, task)]


async def tell(work: Context, rival: Rival) -> list[dict[str, str]]:
    """Run the jobs that queue mails, and return the mails."""
    for args in await queued(rival, "tell_owners_of_suspension"):
        await jobs.tell_owners(work, **args)
    return await queued(rival, jobs.MAIL)


async def test_each_owner_is_told_without_the_reason_and_beyond_the_limits_of_mail(
    people: People, rival: Rival, work: Context, api: Api
) -> None:
    owner = await people.tenant_of("olga")
    for subject, role in (("otto", "owner"), ("adam", "admin")):
        await owner.make_member(rival, subject, role)
    await suspend(api, owner.organization_id)
    await restore(api, owner.organization_id)
    async with running_mail_server() as server:
        await configure_mail(api, server)
        mails = await tell(work, rival)
        assert sorted((mail["change"], mail["subject_id"]) for mail in mails) == [
            ("restored", "olga"), ("restored", "otto"), ("suspended", "olga"), ("suspended", "otto"),
        ]  # fmt: skip
        for mail in mails:
            at = datetime.fromtimestamp(int(mail.pop("at_s")), UTC)
            await jobs.mail_owner(work, **mail, at=at, earlier_attempts=0)
        texts = [received.part("plain") for received in server.received]
    assert len(texts) == 4
    assert not any(REASON in text or "Radio Nordlicht" in text for text in texts)
    assert all(owner.organization_id in text for text in texts)
    assert await rival.rows("SELECT FROM mail_counts") == []


async def test_without_a_mail_server_nobody_is_told(people: People, rival: Rival, work: Context, api: Api) -> None:
    owner = await people.tenant_of("olga")
    await suspend(api, owner.organization_id)
    assert await tell(work, rival) == []
