"""The pages of invitations: making, revoking and accepting them."""

from urllib.parse import urlsplit

import pytest
from support.console.client import CONSOLE_URL, CSRF_TOKEN, ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console.session import Session

NEW = {"email": "ada@example.org", "role": "member", "expires_in_days": "3"}
ACCEPT = "/invitations/accept"


@pytest.fixture
async def tenant(people: People) -> Tenant:
    """An organisation with one project."""
    return await people.tenant_of("owner")


@pytest.fixture
def owner(visitors: ConsoleClient, people: People, clock: FakeClock) -> ConsoleClient:
    """The owner, signed in to the console."""
    return visitors.sign_in_as(people, "owner", clock.now())


@pytest.fixture
def ada(visitors: ConsoleClient, people: People, clock: FakeClock) -> ConsoleClient:
    """The browser of the person who is invited."""
    return visitors.other().sign_in_as(people, "ada", clock.now(), email="ada@example.org")


def path_of(tenant: Tenant, rest: str = "") -> str:
    return f"/organizations/{tenant.organization_id}/members/invitations{rest}"


async def invite(owner: ConsoleClient, tenant: Tenant, **changes: str) -> str:
    """Return the link of a new invitation."""
    page = await owner.submit(path_of(tenant), {**NEW, **changes})
    link = page.find(".//input[@id='secret']").get("value") or ""
    remember_secret(link.rpartition("=")[2])
    return link


async def list_invitations(tenant: Tenant) -> list[dict[str, object]]:
    invitations: list[dict[str, object]] = (await tenant.api.get("/v1/member-invitations", params=tenant.query)).json[
        "data"
    ]
    return invitations


async def test_the_secret_is_shown_once_in_the_fragment_of_a_link(owner: ConsoleClient, tenant: Tenant) -> None:
    assert "No invitations yet." in (await owner.get(path_of(tenant))).text

    link = await invite(owner, tenant)

    parts = urlsplit(link)
    assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{CONSOLE_URL}{ACCEPT}"
    assert parts.query == "", "a query is in logs and in Referer; a fragment is not"
    assert parts.fragment.startswith("token=xin_")
    listed = await owner.get(path_of(tenant))
    assert "ada@example.org Member open not sent" in listed.text
    assert parts.fragment not in listed.html


async def test_the_page_says_whether_a_mail_is_sent(owner: ConsoleClient, tenant: Tenant) -> None:
    page = await owner.submit(path_of(tenant), NEW)

    assert "No e-mail will be sent to ada@example.org: send them the link yourself." in page.text


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"email": "ada"}, "email"),
        ({"role": "owner"}, "role"),
        ({"expires_in_days": "15"}, "expires_in_days"),
        ({"expires_in_days": ""}, "expires_in_days"),
    ],
)
async def test_a_refused_invitation_is_shown_again_with_what_was_typed(
    owner: ConsoleClient, tenant: Tenant, changes: dict[str, str], refused: str
) -> None:
    typed = {**NEW, **changes}

    page = await owner.submit(path_of(tenant), typed)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(f".//p[@id='refused-{refused}']").text
    assert (page.value("email"), page.value("expires_in_days")) == (typed["email"], typed["expires_in_days"])
    assert await list_invitations(tenant) == []


async def test_an_open_invitation_is_revoked(owner: ConsoleClient, tenant: Tenant, ada: ConsoleClient) -> None:
    link = await invite(owner, tenant)
    [invitation] = await list_invitations(tenant)
    path = path_of(tenant, f"/{invitation['id']}/revoke")

    page = await owner.follow(await owner.submit(path))

    assert "The invitation for ada@example.org was revoked." in page.text
    assert not page.find_all(".//table//button")
    assert (await ada.submit(ACCEPT, {"token": link})).trouble == "invitation_invalid"
    assert (await owner.submit(path)).trouble == "invitation_not_pending"


@pytest.mark.parametrize("form", ["token", "link"])
async def test_the_person_joins_with_the_token_or_the_whole_link(
    owner: ConsoleClient, tenant: Tenant, ada: ConsoleClient, form: str
) -> None:
    link = await invite(owner, tenant, role="billing")
    assert "You are signed in as ada@example.org." in (await ada.get(ACCEPT)).text

    joined = await ada.submit(ACCEPT, {"token": link if form == "link" else link.rpartition("=")[2]})

    assert joined.location == f"/organizations/{tenant.organization_id}"
    assert "You have joined the organisation. Your role: Billing." in (await ada.follow(joined)).text


async def test_a_stranger_sees_the_form_without_a_redirect_and_joins_nothing(
    owner: ConsoleClient, tenant: Tenant, people: People, clock: FakeClock
) -> None:
    """A redirect would carry the fragment, and so the secret, on to the identity provider."""
    link = await invite(owner, tenant)
    stranger = owner.other()

    page = await stranger.get(ACCEPT)
    sent = await stranger.submit(ACCEPT, {"token": link, "csrf_token": ""})

    assert page.status == 200
    assert "You sign in on the next page" in page.text
    assert page.find_all(".//input[@name='token']")
    assert (sent.status, sent.trouble) == (401, "sign_in.not_signed_in")
    assert "Sign in to continue" in sent.text
    assert "session" not in sent.text, "there was none that could have ended"
    assert [invitation["status"] for invitation in await list_invitations(tenant)] == ["pending"]
    stranger.sign_in_as(people, "ada", clock.now(), email="ada@example.org")
    back = await stranger.get(ACCEPT)
    assert back.value("token") == link, "what was sent waits in the form, which is sent by the person alone"


async def test_a_person_of_an_unknown_address_who_is_signed_in_is_not_told_to_sign_in(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    token = people.issuer.token("ada")
    visitors.sign_in(Session("oidc", "ada", None, CSRF_TOKEN, clock.now(), True, token))

    page = await visitors.get(ACCEPT)

    assert page.find_all(".//input[@name='token']")
    assert "You sign in on the next page" not in page.text


async def test_an_administrator_joins_with_a_second_factor_only(
    owner: ConsoleClient, tenant: Tenant, people: People, clock: FakeClock
) -> None:
    link = await invite(owner, tenant, role="admin")
    email = "ada@example.org"
    ada = owner.other().sign_in_as(people, "ada", clock.now(), email=email, acr="1", amr=["pwd"])

    asked = await ada.submit(ACCEPT, {"token": link})

    assert (asked.status, asked.trouble) == (403, "sign_in.second_factor_needed")
    ada.sign_in_as(people, "ada", clock.now(), email=email)
    kept = (await ada.get(ACCEPT)).value("token")
    joined = await ada.follow(await ada.submit(ACCEPT, {"token": kept}))
    assert "Your role: Administrator." in joined.text


async def test_another_person_cannot_accept_and_learns_nothing(
    owner: ConsoleClient, tenant: Tenant, people: People, clock: FakeClock
) -> None:
    link = await invite(owner, tenant)
    eve = owner.other().sign_in_as(people, "eve", clock.now())

    page = await eve.submit(ACCEPT, {"token": link})

    assert (page.status, page.trouble) == (400, "invitation_invalid")
    assert page.value("token") == link
    assert "Radio Nordlicht" not in page.text


async def test_a_member_neither_sees_nor_makes_invitations(
    owner: ConsoleClient, tenant: Tenant, rival: Rival, people: People, clock: FakeClock
) -> None:
    await invite(owner, tenant)
    [invitation] = await list_invitations(tenant)
    await tenant.make_member(rival, "reader", "member")
    reader = owner.other().sign_in_as(people, "reader", clock.now())

    pages = [
        await reader.get(path_of(tenant)),
        await reader.submit(path_of(tenant), NEW),
        await reader.submit(path_of(tenant, f"/{invitation['id']}/revoke")),
    ]

    for page in pages:
        assert (page.status, page.trouble) == (403, "forbidden")
    assert await list_invitations(tenant) == [invitation]


async def test_an_administrator_cannot_invite_another(
    owner: ConsoleClient, tenant: Tenant, rival: Rival, people: People, clock: FakeClock
) -> None:
    await tenant.make_member(rival, "boss", "admin")
    boss = owner.other().sign_in_as(people, "boss", clock.now())

    page = await boss.submit(path_of(tenant), {**NEW, "role": "admin"})

    assert (page.status, page.trouble) == (403, "forbidden")
    assert (page.value("email"), page.value("role")) == ("ada@example.org", "admin")


async def test_a_hostile_address_is_text(owner: ConsoleClient, tenant: Tenant) -> None:
    hostile = '"<script>alert(1)</script>"@example.org'

    page = await owner.submit(path_of(tenant), {**NEW, "email": hostile})

    assert page.value("email") == hostile
    assert not page.find_all(".//body//script")


async def test_a_core_that_is_down_keeps_what_was_typed(
    owner: ConsoleClient, tenant: Tenant, ada: ConsoleClient
) -> None:
    owner.core.lose("POST /v1/member-invitations")
    page = await owner.submit(path_of(tenant), NEW)
    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert page.value("email") == "ada@example.org"

    ada.core.refuse("POST /v1/member-invitations/accept", 503, "database_unavailable")
    accepting = await ada.submit(ACCEPT, {"token": "xin_typed"})

    assert (accepting.status, accepting.trouble) == (503, "database_unavailable")
    assert accepting.value("token") == "xin_typed"


async def test_the_pages_speak_french(tenant: Tenant, owner: ConsoleClient, people: People, clock: FakeClock) -> None:
    french = owner.other(language="fr").sign_in_as(people, "owner", clock.now())

    assert "Inviter une personne" in (await french.get(path_of(tenant))).text
    assert (await french.get(ACCEPT)).find(".//h1").text == "Accepter une invitation"
    assert "xin_" in await invite(french, tenant)
