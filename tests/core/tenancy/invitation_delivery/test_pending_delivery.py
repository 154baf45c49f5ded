"""A pending delivery: its job, its sealed secret, and when it is cancelled."""

import asyncio
import datetime as dt

import pytest
from support.api.core_client import Api
from support.database.rival import Rival
from support.outside.mail_server import MailServer
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.suspension import restore, suspend
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.features.tenancy.invitations import jobs
from soundmark.kit.crypto.secret import Secret

from .conftest import PAUSES_S, deliver, read_delivery


async def test_an_invitation_waits_for_its_mail_with_a_sealed_secret(tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    assert invitation["delivery_status"] == "pending"
    assert await read_delivery(rival, invitation) == ("pending", 0, True)
    ((sealed,),) = await rival.rows("SELECT sealed_secret FROM invitations")
    assert invitation["secret"].encode() not in bytes(sealed)
    job = await rival.rows(
        "SELECT args - 'traceparent', lock FROM procrastinate_jobs WHERE task_name = 'deliver_invitation'"
    )
    ids = {"organization_id": tenant.organization_id, "invitation_id": invitation["id"]}
    assert job == [(ids, invitation["id"])], "a job is told ids, and of which trace it is"


async def test_the_job_is_deferred_in_the_transaction_of_the_invitation(tenant: Tenant, rival: Rival) -> None:
    """A Core that dies before its commit leaves neither."""
    before = await rival.rows("SELECT count(*) FROM procrastinate_jobs")
    async with rival.holding("LOCK TABLE procrastinate_jobs IN ACCESS EXCLUSIVE MODE"):
        inviting = await rival.while_waiting(tenant.api.post("/v1/member-invitations", json=tenant.invitation_body()))
        await rival.kill_waiting_sessions()
        answer = await inviting
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await rival.rows("SELECT count(*) FROM procrastinate_jobs") == before
    assert await rival.rows("SELECT id FROM invitations") == []
    assert await rival.rows("SELECT digest FROM invitation_digests") == []
    assert await rival.audited("invitation.created") == []


async def test_without_a_mail_server_nothing_is_sealed(api: Api, rival: Rival) -> None:
    tenant = await make_tenant(api)
    invitation = await tenant.make_invitation()
    assert invitation["delivery_status"] == "unavailable"
    assert await read_delivery(rival, invitation) == ("unavailable", 0, False)


async def test_a_revoked_invitation_is_not_sent(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    invitation = await tenant.make_invitation()
    revoked = await tenant.api.post(f"/v1/member-invitations/{invitation['id']}/revoke", params=tenant.query)
    assert revoked.json["delivery_status"] == "cancelled"
    assert await read_delivery(rival, invitation) == ("cancelled", 0, False)
    assert await deliver(ctx, invitation) is None
    assert mail_server.connections_count == 0


async def test_an_invitation_that_is_revoked_while_it_is_sent_stays_cancelled(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    mail_server.is_hanging = True
    invitation = await tenant.make_invitation()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "SENDING_MAX", dt.timedelta(seconds=2))
        sending = asyncio.create_task(deliver(ctx, invitation))
        await mail_server.until_received()
        revoked = await tenant.api.post(f"/v1/member-invitations/{invitation['id']}/revoke", params=tenant.query)
        assert revoked.json["delivery_status"] == "cancelled"
        assert await sending is None, "there is nothing to come back for"
    assert await read_delivery(rival, invitation) == ("cancelled", 1, False)


async def test_an_expired_invitation_is_not_sent(
    api: Api, tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    """Nor one whose next attempt would come after its expiry: the job destroys its secret when it runs again."""
    mail_server.replies["RCPT"] = "451 try again later"
    invitation = await tenant.make_invitation(expires_in_days=1)
    await deliver(ctx, invitation)
    api.clock.advance(days=1)
    assert await deliver(ctx, invitation) is None
    assert await read_delivery(rival, invitation) == ("cancelled", 1, False)
    assert mail_server.connections_count == 1


async def test_the_job_of_a_deleted_invitation_ends(tenant: Tenant, ctx: Context, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    await rival.run("DELETE FROM organizations")
    assert await deliver(ctx, invitation) is None


async def test_a_secret_that_does_not_open_is_a_failed_attempt(
    tenant: Tenant, database_url: Secret, clock: FakeClock, rival: Rival
) -> None:
    """The worker was started with another master key."""
    invitation = await tenant.make_invitation()
    async with make_worker(database_url, clock, MASTER_KEY="A" * 43) as ctx:
        assert await deliver(ctx, invitation) is not None
    assert await read_delivery(rival, invitation) == ("pending", 1, True)


async def test_a_sealed_secret_opens_in_its_own_row_only(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    one, other = await tenant.make_invitation(), await tenant.make_invitation()
    ((sealed,),) = await rival.rows("SELECT sealed_secret FROM invitations WHERE id = %s", one["id"])
    await rival.run("UPDATE invitations SET sealed_secret = %s WHERE id = %s", bytes(sealed), other["id"])
    assert await deliver(ctx, other) is not None
    assert mail_server.received == []


async def test_no_log_holds_a_secret_or_an_address(
    tenant: Tenant, ctx: Context, mail_server: MailServer, api: Api, capfd: pytest.CaptureFixture[str]
) -> None:
    invitation = await tenant.make_invitation()
    for reply in ("451 ada@example.org is busy", "550 no ada@example.org here"):
        mail_server.replies["RCPT"] = reply
        await deliver(ctx, invitation)
        api.clock.advance(seconds=PAUSES_S[0])
    output = "".join(capfd.readouterr())
    assert "invitation_delivery" in output
    assert invitation["id"] in output
    for secret in (invitation["secret"], invitation["secret"].removeprefix("xin_"), "ada@"):
        assert secret not in output


async def test_a_suspended_organisation_sends_no_invitation_until_it_is_restored(
    tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival
) -> None:
    """What it queued before may be what it was suspended for."""
    invitation = await tenant.make_invitation()
    await suspend(tenant.api, tenant.organization_id)

    again_at = await deliver(ctx, invitation)

    assert again_at is not None
    assert again_at > ctx.clock.now()
    assert mail_server.received == []
    assert await read_delivery(rival, invitation) == ("pending", 0, True), "a wait is no attempt"
    await restore(tenant.api, tenant.organization_id)
    assert await deliver(ctx, invitation) is None
    assert len(mail_server.received) == 1
