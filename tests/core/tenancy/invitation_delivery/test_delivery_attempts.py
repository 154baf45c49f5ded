"""The attempts to deliver an invitation: it is sent once, whatever the mail server does."""

import asyncio
import datetime as dt
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.mail_server import MailServer, configure_mail, running_mail_server
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.invitation import ATTEMPTS_MAX, LEASE, SENDING_MAX
from soundmark.core.features.tenancy.invitations import jobs
from soundmark.kit.crypto.secret import Secret

from .conftest import PAUSES_S, deliver, read_delivery


async def test_a_finished_delivery_may_be_run_again_without_a_second_mail(
    tenant: Tenant, ctx: Context, mail_server: MailServer
) -> None:
    invitation = await tenant.make_invitation()
    for _ in range(3):
        assert await deliver(ctx, invitation) is None
    assert len(mail_server.received) == 1


async def test_only_one_of_two_concurrent_runs_sends(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    """The second one waits for the row, finds an attempt under way, and comes back after its lease."""
    ctx.clock.freeze()  # type: ignore[attr-defined]  # the tests' clock
    invitation = await tenant.make_invitation()
    async with rival.holding("SELECT 1 FROM invitations FOR UPDATE"):
        both = [asyncio.create_task(deliver(ctx, invitation)) for _ in range(2)]
        await rival.until_someone_waits(2)
    ended = await asyncio.gather(*both)
    assert len(mail_server.received) == 1
    # The second may also have come when everything was over.
    assert {None} <= set(ended) <= {None, ctx.clock.now() + LEASE}
    assert await read_delivery(rival, invitation) == ("sent", 1, False)


@pytest.mark.parametrize("reply", ["550 no such person", "554 no"])
async def test_a_refusal_5xx_is_final(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival, reply: str
) -> None:
    mail_server.replies["RCPT"] = reply
    invitation = await tenant.make_invitation()
    assert await deliver(ctx, invitation) is None
    assert await read_delivery(rival, invitation) == ("dead", 1, False)
    assert mail_server.received == []


async def test_an_address_that_the_server_cannot_take_is_dead_at_once(
    api: Api, tenant: Tenant, ctx: Context, rival: Rival
) -> None:
    """Without SMTPUTF8, four further attempts in 42 minutes would end in the same way."""
    async with running_mail_server(knows_utf8=False) as server:
        await configure_mail(api, server)
        invitation = await tenant.make_invitation(email="jürgen@example.org")
        with capture_logs() as logs:
            assert await deliver(ctx, invitation) is None
    assert await read_delivery(rival, invitation) == ("dead", 1, False)
    (logged,) = [line for line in logs if line["event"] == "invitation_delivery"]
    assert (logged["status"], logged["reason"]) == ("dead", "no_smtputf8")


async def test_a_strict_server_takes_the_mail(tenant: Tenant, ctx: Context, mail_server: MailServer) -> None:
    """It is greeted by the host of the base URL; in these tests that has a dot."""
    mail_server.is_strict = True
    invitation = await tenant.make_invitation()
    assert await deliver(ctx, invitation) is None
    assert mail_server.greetings == ["core.test"]


async def test_the_setting_names_us_to_the_mail_server(
    tenant: Tenant, mail_server: MailServer, database_url: Secret, clock: FakeClock
) -> None:
    invitation = await tenant.make_invitation()
    async with make_worker(database_url, clock, SMTP_GREETING="192.0.2.7") as ctx:
        assert await deliver(ctx, invitation) is None
    assert mail_server.greetings == ["[192.0.2.7]"]


async def test_a_busy_server_is_tried_five_times(
    api: Api, tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    """Each attempt is later after the previous one; after the last the secret is destroyed."""
    api.clock.freeze()
    mail_server.replies["RCPT"] = "451 try again later"
    invitation = await tenant.make_invitation()
    for number, pause_s in enumerate(PAUSES_S, 1):
        again_at = api.clock.now() + dt.timedelta(seconds=pause_s)
        assert await deliver(ctx, invitation) == again_at
        assert await read_delivery(rival, invitation) == ("pending", number, True)
        api.clock.advance(seconds=pause_s, milliseconds=-1)
        assert await deliver(ctx, invitation) == again_at, "too early"
        api.clock.advance(milliseconds=1)
    assert await deliver(ctx, invitation) is None
    assert await read_delivery(rival, invitation) == ("dead", ATTEMPTS_MAX, False)
    assert mail_server.connections_count == ATTEMPTS_MAX
    assert await deliver(ctx, invitation) is None
    assert mail_server.connections_count == ATTEMPTS_MAX


async def test_a_mail_whose_fate_is_unknown_is_sent_again_byte_for_byte(
    api: Api, tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    """The connection drops after DATA: the person may get two copies, which their program shows as one."""
    mail_server.on_data = lambda protocol: protocol.transport.abort()
    invitation = await tenant.make_invitation()
    assert await deliver(ctx, invitation) is not None
    assert await read_delivery(rival, invitation) == ("pending", 1, True)
    mail_server.on_data = None
    api.clock.advance(seconds=PAUSES_S[0])
    assert await deliver(ctx, invitation) is None
    one, other = mail_server.received
    assert one.message["Message-ID"] == other.message["Message-ID"]
    assert one.content == other.content
    assert await read_delivery(rival, invitation) == ("sent", 2, False)


async def test_a_server_that_hangs_is_left_before_another_attempt_may_begin(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SENDING_MAX < LEASE
    monkeypatch.setattr(jobs, "SENDING_MAX", dt.timedelta(seconds=0.5))
    api = tenant.api
    mail_server.is_hanging = True
    api.clock.freeze()
    invitation = await tenant.make_invitation()
    assert await deliver(ctx, invitation) == api.clock.now() + dt.timedelta(seconds=PAUSES_S[0])
    assert await read_delivery(rival, invitation) == ("pending", 1, True)


async def test_while_one_worker_sends_no_other_does(
    api: Api, tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    api.clock.freeze()
    mail_server.is_hanging = True
    invitation = await tenant.make_invitation()
    sending = asyncio.create_task(deliver(ctx, invitation))
    await mail_server.until_received()
    assert await read_delivery(rival, invitation) == ("processing", 1, True)
    assert await deliver(ctx, invitation) == api.clock.now() + LEASE
    assert len(mail_server.received) == 1
    # The worker is stopped: when the lease is over, any worker takes up its attempt.
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    mail_server.is_hanging = False
    api.clock.advance(seconds=LEASE.total_seconds())
    assert await deliver(ctx, invitation) is None
    assert len(mail_server.received) == 2
    assert await read_delivery(rival, invitation) == ("sent", 2, False)


async def test_attempts_of_killed_workers_count(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    """Each worker was killed while it sent; a sixth attempt would be one too many."""
    invitation = await tenant.make_invitation()
    await rival.run("UPDATE invitations SET delivery_status = 'processing', delivery_attempts = %s", ATTEMPTS_MAX)
    assert await deliver(ctx, invitation) is None
    assert await read_delivery(rival, invitation) == ("dead", ATTEMPTS_MAX, False)
    assert mail_server.connections_count == 0


async def test_an_overtaken_attempt_does_not_change_the_status(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    """A worker that was stopped for longer than its lease wakes up while another one is sending."""
    mail_server.on_data = lambda protocol: protocol.transport.abort()
    invitation = await tenant.make_invitation()
    async with rival.holding("SELECT 1"):
        original = jobs._send

        async def overtaken(context: Context, attempt: Any) -> None:
            await rival.run("UPDATE invitations SET delivery_attempts = 2")
            await original(context, attempt)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jobs, "_send", overtaken)
            assert await deliver(ctx, invitation) is None
    assert await read_delivery(rival, invitation) == ("processing", 2, True)


async def test_a_removed_server_is_a_failed_attempt(tenant: Tenant, ctx: Context, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    await rival.run("DELETE FROM platform_configuration WHERE name = 'smtp_host'")
    assert await deliver(ctx, invitation) is not None
    assert await read_delivery(rival, invitation) == ("pending", 1, True)


async def test_a_change_of_the_server_applies_to_the_next_attempt(
    api: Api, tenant: Tenant, ctx: Context, rival: Rival
) -> None:
    """Without a restart of the worker."""
    invitation = await tenant.make_invitation()
    await rival.run("UPDATE platform_configuration SET value = '1' WHERE name = 'smtp_port'")
    assert await deliver(ctx, invitation) is not None
    async with running_mail_server() as other:
        await configure_mail(api, other)
        api.clock.advance(seconds=PAUSES_S[0])
        assert await deliver(ctx, invitation) is None
        assert len(other.received) == 1
