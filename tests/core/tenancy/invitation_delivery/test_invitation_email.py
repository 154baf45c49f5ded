"""The email of an invitation: its content and its recipient."""

import datetime as dt
import re
from html import unescape
from typing import Any

import pytest
from support.api.core_client import Api
from support.api.core_settings import BASE_URL
from support.database.rival import Rival
from support.outside.mail_server import MailServer
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import make_worker
from support.tenancy.tenant import Tenant

from soundmark.core.context import Context
from soundmark.kit.crypto.secret import Secret

from .conftest import deliver, read_delivery


def links_of(console_url: str, invitation: dict[str, Any]) -> set[str]:
    accept_url = f"{console_url}/invitations/accept"
    return {accept_url, f"{accept_url}#token={invitation['secret']}"}


async def test_the_mail_carries_the_token(tenant: Tenant, ctx: Context, mail_server: MailServer, rival: Rival) -> None:
    invitation = await tenant.make_invitation(role="billing", expires_in_days=3)
    assert await deliver(ctx, invitation) is None
    (mail,) = mail_server.received
    assert (mail.sender, mail.recipient, mail.token) == ("codes@example.org", "ada@example.org", invitation["secret"])
    assert await read_delivery(rival, invitation) == ("sent", 1, False)


async def test_the_mail_says_the_same_as_text_and_as_html(
    tenant: Tenant, ctx: Context, mail_server: MailServer
) -> None:
    invitation = await tenant.make_invitation(role="admin")
    await deliver(ctx, invitation)
    (mail,) = mail_server.received
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
    for expected_text in ('"Radio Nordlicht"', "an administrator", BASE_URL, "ada@example.org", invitation["secret"]):
        assert expected_text in mail.part("plain")
        assert expected_text in html
    # Nothing is loaded from anywhere, and the links lead to the service itself alone.
    assert not re.search(r"<(img|script|link|iframe|style)|src=", html)
    assert set(re.findall(r'href="([^"]*)"', html)) == links_of(BASE_URL, invitation)


async def test_the_link_leads_to_the_console(
    tenant: Tenant, mail_server: MailServer, database_url: Secret, clock: FakeClock
) -> None:
    """The token is in the fragment, which is in no log of a server and in no `Referer`."""
    invitation = await tenant.make_invitation()
    async with make_worker(database_url, clock, CONSOLE_URL="https://console.test") as ctx:
        await deliver(ctx, invitation)
    (mail,) = mail_server.received
    link = f"https://console.test/invitations/accept#token={invitation['secret']}"

    assert link in mail.part("plain").splitlines()
    assert set(re.findall(r'href="([^"]*)"', mail.part("html"))) == links_of("https://console.test", invitation)


async def test_the_name_of_an_organisation_cannot_alter_the_mail(
    api: Api, tenant: Tenant, ctx: Context, mail_server: MailServer
) -> None:
    name = 'A <img src="//evil.example"> &\u2028Bcc: eve@evil.example\u0085 {token}'
    await api.call("PATCH", f"/v1/organizations/{tenant.organization_id}", json={"name": name})
    await deliver(ctx, await tenant.make_invitation())
    (mail,) = mail_server.received
    assert mail.message["Bcc"] is None
    assert "<img" not in mail.part("html")
    assert "&lt;img" in mail.part("html")
    assert "evil" not in str(mail.message["Subject"])


async def test_the_name_of_an_organisation_is_a_quotation_without_a_link(
    api: Api, tenant: Tenant, ctx: Context, mail_server: MailServer
) -> None:
    """Otherwise anybody who signs in could write to anybody in our name."""
    name = 'LOCKED: sign in at https://evil.example/login or hTTps://://x" now'
    await api.call("PATCH", f"/v1/organizations/{tenant.organization_id}", json={"name": name})
    invitation = await tenant.make_invitation()
    await deliver(ctx, invitation)
    (mail,) = mail_server.received

    headers = "".join(str(value) for _, value in mail.message.items())
    assert not re.search("evil|LOCKED|login", headers)
    quoted = '"LOCKED: sign in at https: //evil.example/login or hTTps: //: //x\' now"'
    for text in (mail.part("plain"), unescape(mail.part("html"))):
        assert quoted in text
        assert text.replace(BASE_URL, "").count("://") == 0
        assert text.count("LOCKED") == 1
    assert set(re.findall(r'href="([^"]*)"', mail.part("html"))) == links_of(BASE_URL, invitation)


@pytest.mark.parametrize(
    ("email", "recipient"),
    [
        ("Ada.Lovelace+codes@Example.ORG", "Ada.Lovelace+codes@example.org"),
        ("ada@exämple.org", "ada@xn--exmple-cua.org"),
        ("ärger@example.org", "ärger@example.org"),
    ],
)
async def test_mail_reaches_addresses_of_every_language(
    tenant: Tenant, ctx: Context, mail_server: MailServer, email: str, recipient: str
) -> None:
    invitation = await tenant.make_invitation(email=email)
    await deliver(ctx, invitation)
    (mail,) = mail_server.received
    assert (mail.recipient, mail.token) == (recipient, invitation["secret"])
