"""The mail of an invitation: out once, whatever the server does, and its secret kept sealed no longer than that."""

import asyncio
import contextlib
import datetime as dt
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest
from support.core_client import Api
from support.core_settings import BASE_URL, jobs_settings
from support.fake_clock import FakeClock
from support.mail_server import MailServer, configure_mail, running_mail_server
from support.rival import Rival
from support.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.invitation import ATTEMPTS_MAX, LEASE, SENDING_MAX
from soundmark.core.features.tenancy.invitations import jobs
from soundmark.core.worker import make_job_context
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.jobs import Later

OPEN = ("pending", "processing")
PAUSES_S = [30, 120, 480, 1920]


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with running_mail_server() as running:
        yield running


@pytest.fixture
async def tenant(api: Api, server: MailServer) -> Tenant:
    """A tenant of a platform whose administrators configured that mail server."""
    await configure_mail(api, server)
    return await make_tenant(api)


@contextlib.asynccontextmanager
async def working(database_url: Secret, clock: FakeClock, **changes: str) -> AsyncIterator[Context]:
    ctx = make_job_context(jobs_settings(database_url, **changes), clock=clock)
    await ctx.db.open()
    try:
        yield ctx
    finally:
        await ctx.db.close()


@pytest.fixture
async def ctx(database_url: Secret, clock: FakeClock) -> AsyncIterator[Context]:
    async with working(database_url, clock) as made:
        yield made


async def deliver(ctx: Context, invitation: dict[str, Any]) -> dt.datetime | None:
    """Run the job; when it wants to be run again."""
    try:
        await jobs.deliver(ctx, organization_id=invitation["organization_id"], invitation_id=invitation["id"])
    except Later as later:
        return later.at
    return None


async def state(rival: Rival, invitation: dict[str, Any]) -> tuple[str, int, bool]:
    """The delivery's status and attempts, and whether a sealed secret is kept."""
    rows = await rival.rows(
        "SELECT delivery_status, delivery_attempts, sealed_secret IS NOT NULL FROM invitations WHERE id = %s",
        invitation["id"],
    )
    found: tuple[str, int, bool] = rows[0]
    return found


async def test_an_invitation_waits_for_its_mail_with_a_sealed_secret(tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    assert invitation["delivery_status"] == "pending"
    assert await state(rival, invitation) == ("pending", 0, True)
    ((sealed,),) = await rival.rows("SELECT sealed_secret FROM invitations")
    assert invitation["secret"].encode() not in bytes(sealed)
    job = await rival.rows("SELECT args, lock FROM procrastinate_jobs WHERE task_name = 'deliver_invitation'")
    ids = {"organization_id": tenant.organization_id, "invitation_id": invitation["id"]}
    assert (ids, invitation["id"]) in job, "a job is told ids and nothing else"


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
    assert await state(rival, invitation) == ("unavailable", 0, False)


async def test_the_mail_brings_the_token(tenant: Tenant, ctx: Context, server: MailServer, rival: Rival) -> None:
    invitation = await tenant.make_invitation(role="billing", expires_in_days=3)
    assert await deliver(ctx, invitation) is None
    (mail,) = server.received
    assert (mail.sender, mail.recipient, mail.token) == ("codes@example.org", "ada@example.org", invitation["secret"])
    assert await state(rival, invitation) == ("sent", 1, False)


async def test_the_mail_says_the_same_as_text_and_as_html(tenant: Tenant, ctx: Context, server: MailServer) -> None:
    invitation = await tenant.make_invitation(role="admin")
    await deliver(ctx, invitation)
    (mail,) = server.received
    message = mail.message
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert str(message["From"]) == '"Radio Ä, Codes" <codes@example.org>'
    assert str(message["To"]) == "ada@example.org"
    assert str(message["Subject"]) == "Invitation to an organisation on Soundmark"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"] == f"<{invitation['id']}@core.test>"
    assert message["Date"].datetime == dt.datetime.fromisoformat(invitation["created_at"]).replace(microsecond=0)
    html = mail.part("html")
    for said in ('"Radio Nordlicht"', "an administrator", BASE_URL, "ada@example.org", invitation["secret"]):
        assert said in mail.part("plain")
        assert said in html
    # Nothing is loaded from anywhere, and only the service itself is linked to.
    assert not re.search(r"<(img|script|link|iframe|style)|src=", html)
    assert set(re.findall(r'href="([^"]*)"', html)) == {BASE_URL}


async def test_what_an_organisation_is_called_cannot_alter_the_mail(
    api: Api, tenant: Tenant, ctx: Context, server: MailServer
) -> None:
    name = 'A <img src="//evil.example"> &\u2028Bcc: eve@evil.example\u0085 {token}'
    await api.call("PATCH", f"/v1/organizations/{tenant.organization_id}", json={"name": name})
    await deliver(ctx, await tenant.make_invitation())
    (mail,) = server.received
    assert mail.message["Bcc"] is None
    assert "<img" not in mail.part("html")
    assert "&lt;img" in mail.part("html")
    assert "evil" not in str(mail.message["Subject"])


async def test_what_an_organisation_is_called_is_a_quotation_without_a_link(
    api: Api, tenant: Tenant, ctx: Context, server: MailServer
) -> None:
    """Else anybody who signs in could write to anybody in our name."""
    name = 'LOCKED: sign in at https://evil.example/login or hTTps://://x" now'
    await api.call("PATCH", f"/v1/organizations/{tenant.organization_id}", json={"name": name})
    await deliver(ctx, await tenant.make_invitation())
    (mail,) = server.received

    headers = "".join(str(value) for _, value in mail.message.items())
    assert not re.search("evil|LOCKED|login", headers)
    quoted = '"LOCKED: sign in at https: //evil.example/login or hTTps: //: //x\' now"'
    for text in (mail.part("plain"), unescape(mail.part("html"))):
        assert quoted in text
        assert text.replace(BASE_URL, "").count("://") == 0
        assert text.count("LOCKED") == 1
    assert set(re.findall(r'href="([^"]*)"', mail.part("html"))) == {BASE_URL}


@pytest.mark.parametrize(
    ("email", "recipient"),
    [
        ("Ada.Lovelace+codes@Example.ORG", "Ada.Lovelace+codes@example.org"),
        ("ada@exämple.org", "ada@xn--exmple-cua.org"),
        ("ärger@example.org", "ärger@example.org"),
    ],
)
async def test_mail_reaches_addresses_of_every_language(
    tenant: Tenant, ctx: Context, server: MailServer, email: str, recipient: str
) -> None:
    invitation = await tenant.make_invitation(email=email)
    await deliver(ctx, invitation)
    (mail,) = server.received
    assert (mail.recipient, mail.token) == (recipient, invitation["secret"])


async def test_an_open_delivery_is_run_again_as_often_as_one_likes(
    tenant: Tenant, ctx: Context, server: MailServer
) -> None:
    invitation = await tenant.make_invitation()
    for _ in range(3):
        assert await deliver(ctx, invitation) is None
    assert len(server.received) == 1


async def test_one_of_two_runs_at_once_sends(tenant: Tenant, ctx: Context, server: MailServer, rival: Rival) -> None:
    """The one that comes second waits for the row, finds an attempt under way, and comes back after its lease."""
    ctx.clock.freeze()  # type: ignore[attr-defined]  # the tests' clock
    invitation = await tenant.make_invitation()
    async with rival.holding("SELECT 1 FROM invitations FOR UPDATE"):
        both = [asyncio.create_task(deliver(ctx, invitation)) for _ in range(2)]
        await rival.until_someone_waits(2)
    ended = await asyncio.gather(*both)
    assert len(server.received) == 1
    # The loser may also have come when everything was over.
    assert {None} <= set(ended) <= {None, ctx.clock.now() + LEASE}
    assert await state(rival, invitation) == ("sent", 1, False)


@pytest.mark.parametrize("reply", ["550 no such person", "554 no"])
async def test_a_refusal_5xx_is_final(
    tenant: Tenant, ctx: Context, server: MailServer, rival: Rival, reply: str
) -> None:
    server.replies["RCPT"] = reply
    invitation = await tenant.make_invitation()
    assert await deliver(ctx, invitation) is None
    assert await state(rival, invitation) == ("dead", 1, False)
    assert server.received == []


async def test_a_server_that_is_busy_is_asked_five_times(
    api: Api, tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    """Each time later than the time before; then the secret is destroyed."""
    api.clock.freeze()
    server.replies["RCPT"] = "451 try again later"
    invitation = await tenant.make_invitation()
    for number, pause_s in enumerate(PAUSES_S, 1):
        again_at = api.clock.now() + dt.timedelta(seconds=pause_s)
        assert await deliver(ctx, invitation) == again_at
        assert await state(rival, invitation) == ("pending", number, True)
        api.clock.advance(seconds=pause_s, milliseconds=-1)
        assert await deliver(ctx, invitation) == again_at, "too early"
        api.clock.advance(milliseconds=1)
    assert await deliver(ctx, invitation) is None
    assert await state(rival, invitation) == ("dead", ATTEMPTS_MAX, False)
    assert server.connections_count == ATTEMPTS_MAX
    assert await deliver(ctx, invitation) is None
    assert server.connections_count == ATTEMPTS_MAX


async def test_a_mail_whose_fate_is_unknown_is_sent_again_byte_for_byte(
    api: Api, tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    """The connection drops after DATA: the person may get it twice, and their program sees one."""
    server.on_data = lambda protocol: protocol.transport.abort()
    invitation = await tenant.make_invitation()
    assert await deliver(ctx, invitation) is not None
    assert await state(rival, invitation) == ("pending", 1, True)
    server.on_data = None
    api.clock.advance(seconds=PAUSES_S[0])
    assert await deliver(ctx, invitation) is None
    one, other = server.received
    assert one.message["Message-ID"] == other.message["Message-ID"]
    assert one.content == other.content
    assert await state(rival, invitation) == ("sent", 2, False)


async def test_a_server_that_hangs_is_left_before_another_attempt_may_begin(
    tenant: Tenant, ctx: Context, server: MailServer, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SENDING_MAX < LEASE
    monkeypatch.setattr(jobs, "SENDING_MAX", dt.timedelta(seconds=0.5))
    api = tenant.api
    server.is_hanging = True
    api.clock.freeze()
    invitation = await tenant.make_invitation()
    assert await deliver(ctx, invitation) == api.clock.now() + dt.timedelta(seconds=PAUSES_S[0])
    assert await state(rival, invitation) == ("pending", 1, True)


async def test_while_one_sends_nobody_else_does(
    api: Api, tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    api.clock.freeze()
    server.is_hanging = True
    invitation = await tenant.make_invitation()
    sending = asyncio.create_task(deliver(ctx, invitation))
    await server.until_received()
    assert await state(rival, invitation) == ("processing", 1, True)
    assert await deliver(ctx, invitation) == api.clock.now() + LEASE
    assert len(server.received) == 1
    # The worker is stopped: what it began is taken up when the lease is over, by whoever comes.
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    server.is_hanging = False
    api.clock.advance(seconds=LEASE.total_seconds())
    assert await deliver(ctx, invitation) is None
    assert len(server.received) == 2
    assert await state(rival, invitation) == ("sent", 2, False)


async def test_attempts_that_nobody_came_back_from_count(
    tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    """Each worker was killed while it sent: the sixth would be one too many."""
    invitation = await tenant.make_invitation()
    await rival.run("UPDATE invitations SET delivery_status = 'processing', delivery_attempts = %s", ATTEMPTS_MAX)
    assert await deliver(ctx, invitation) is None
    assert await state(rival, invitation) == ("dead", ATTEMPTS_MAX, False)
    assert server.connections_count == 0


async def test_an_attempt_that_is_overtaken_does_not_speak_for_the_other(
    tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    """A worker that was stopped for longer than its lease wakes up and finds that somebody else is sending."""
    server.on_data = lambda protocol: protocol.transport.abort()
    invitation = await tenant.make_invitation()
    async with rival.holding("SELECT 1"):
        original = jobs._send

        async def overtaken(context: Context, attempt: Any) -> None:
            await rival.run("UPDATE invitations SET delivery_attempts = 2")
            await original(context, attempt)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jobs, "_send", overtaken)
            assert await deliver(ctx, invitation) is None
    assert await state(rival, invitation) == ("processing", 2, True)


async def test_a_revoked_invitation_is_not_sent(tenant: Tenant, ctx: Context, server: MailServer, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    revoked = await tenant.api.post(f"/v1/member-invitations/{invitation['id']}/revoke", params=tenant.query)
    assert revoked.json["delivery_status"] == "cancelled"
    assert await state(rival, invitation) == ("cancelled", 0, False)
    assert await deliver(ctx, invitation) is None
    assert server.connections_count == 0


async def test_an_invitation_that_is_revoked_while_it_is_sent_stays_cancelled(
    tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    server.is_hanging = True
    invitation = await tenant.make_invitation()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "SENDING_MAX", dt.timedelta(seconds=2))
        sending = asyncio.create_task(deliver(ctx, invitation))
        await server.until_received()
        revoked = await tenant.api.post(f"/v1/member-invitations/{invitation['id']}/revoke", params=tenant.query)
        assert revoked.json["delivery_status"] == "cancelled"
        assert await sending is None, "there is nothing to come back for"
    assert await state(rival, invitation) == ("cancelled", 1, False)


async def test_an_expired_invitation_is_not_sent(
    api: Api, tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    """Nor one whose next attempt would come after its end: its secret is destroyed when the job comes back."""
    server.replies["RCPT"] = "451 try again later"
    invitation = await tenant.make_invitation(expires_in_days=1)
    await deliver(ctx, invitation)
    api.clock.advance(days=1)
    assert await deliver(ctx, invitation) is None
    assert await state(rival, invitation) == ("cancelled", 1, False)
    assert server.connections_count == 1


async def test_an_organisation_that_is_closing_invites_nobody(
    tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    invitation = await tenant.make_invitation()
    await rival.run("UPDATE organizations SET deletion_requested_at = now()")
    assert await deliver(ctx, invitation) is None
    assert await state(rival, invitation) == ("cancelled", 0, False)
    assert server.connections_count == 0


async def test_the_job_of_an_invitation_that_is_gone_ends(tenant: Tenant, ctx: Context, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    await rival.run("DELETE FROM organizations")
    assert await deliver(ctx, invitation) is None


async def test_a_removed_server_is_a_failed_attempt(tenant: Tenant, ctx: Context, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    await rival.run("DELETE FROM platform_configuration WHERE name = 'smtp_host'")
    assert await deliver(ctx, invitation) is not None
    assert await state(rival, invitation) == ("pending", 1, True)


async def test_a_change_of_the_server_holds_for_the_next_attempt(
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


async def test_a_secret_that_does_not_open_is_a_failed_attempt(
    tenant: Tenant, database_url: Secret, clock: FakeClock, rival: Rival
) -> None:
    """The worker was started with another master key."""
    invitation = await tenant.make_invitation()
    async with working(database_url, clock, MASTER_KEY="A" * 43) as ctx:
        assert await deliver(ctx, invitation) is not None
    assert await state(rival, invitation) == ("pending", 1, True)


async def test_a_sealed_secret_opens_in_its_own_row_only(
    tenant: Tenant, ctx: Context, server: MailServer, rival: Rival
) -> None:
    one, other = await tenant.make_invitation(), await tenant.make_invitation()
    ((sealed,),) = await rival.rows("SELECT sealed_secret FROM invitations WHERE id = %s", one["id"])
    await rival.run("UPDATE invitations SET sealed_secret = %s WHERE id = %s", bytes(sealed), other["id"])
    assert await deliver(ctx, other) is not None
    assert server.received == []


async def test_no_log_tells_a_secret_or_an_address(
    tenant: Tenant, ctx: Context, server: MailServer, api: Api, capfd: pytest.CaptureFixture[str]
) -> None:
    invitation = await tenant.make_invitation()
    for reply in ("451 ada@example.org is busy", "550 no ada@example.org here"):
        server.replies["RCPT"] = reply
        await deliver(ctx, invitation)
        api.clock.advance(seconds=PAUSES_S[0])
    said = "".join(capfd.readouterr())
    assert "invitation_delivery" in said
    assert invitation["id"] in said
    for secret in (invitation["secret"], invitation["secret"].removeprefix("xin_"), "ada@"):
        assert secret not in said
