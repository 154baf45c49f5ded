"""The pages of members."""

import pytest
from support.console.client import ConsoleClient
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console.pages.members import routes

STRANGE = 'auth0|a/b?c=d&e="<b>'


@pytest.fixture
async def tenant(people: People, rival: Rival) -> Tenant:
    """An organisation with an owner and three others."""
    tenant = await people.tenant_of("owner")
    for subject_id, role in (("boss", "admin"), ("reader", "member"), ("payer", "billing")):
        await tenant.make_member(rival, subject_id, role)
    return tenant


@pytest.fixture
def owner(visitors: ConsoleClient, people: People, clock: FakeClock) -> ConsoleClient:
    """The owner, signed in to the console."""
    return visitors.sign_in_as(people, "owner", clock.now())


def path_of(tenant: Tenant, rest: str = "") -> str:
    return f"/organizations/{tenant.organization_id}/members{rest}"


async def roles(tenant: Tenant) -> dict[str, str]:
    members = (await tenant.api.get("/v1/members", params=tenant.query)).json["data"]
    return {member["subject_id"]: member["role"] for member in members}


async def test_the_members_are_listed_with_their_roles(owner: ConsoleClient, tenant: Tenant) -> None:
    page = await owner.get(path_of(tenant))

    rows = {
        "".join(row.find("th").itertext()).strip(): row.find(".//option[@selected]").get("value")
        for row in page.find_all(".//tbody/tr")
    }
    assert rows == {
        "payer@example.org": "billing",
        "reader@example.org": "member",
        "boss@example.org": "admin",
        "owner@example.org (you)": "owner",
    }


async def test_open_invitations_are_beside_the_members_and_are_withdrawn_there(
    owner: ConsoleClient, tenant: Tenant
) -> None:
    page = await owner.get(path_of(tenant))
    assert "Nobody has an open invitation." in page.text
    await tenant.make_invitation(email="ada@example.org")
    await tenant.make_invitation(email="bea@example.org")

    page = await owner.get(path_of(tenant))
    actions = [str(each.get("action")) for each in page.find_all(".//form") if "/revoke" in str(each.get("action"))]
    assert "ada@example.org Member open not sent" in page.text
    assert len(page.find_all(".//main//section//tbody//time")) == 2
    assert len(actions) == 2
    await owner.submit(actions[0])

    left = (await owner.get(path_of(tenant))).find_all(".//main//section//tbody//bdi")
    assert [each.text for each in left] == ["ada@example.org"], "the newest came first"


async def test_more_open_invitations_than_the_page_shows_are_on_theirs(
    owner: ConsoleClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ada", "bea"):
        await tenant.make_invitation(email=f"{name}@example.org")
    monkeypatch.setattr(routes, "_PENDING_MAX", 1)

    page = await owner.get(path_of(tenant))

    assert ("ada@example.org" in page.text, "bea@example.org" in page.text) == (False, True)
    assert page.find(".//main//section/p/a").get("href") == path_of(tenant, "/invitations")


async def test_an_administrator_is_offered_no_act_that_only_an_owner_may_do(
    visitors: ConsoleClient, people: People, tenant: Tenant, clock: FakeClock
) -> None:
    boss = visitors.sign_in_as(people, "boss", clock.now())

    page = await boss.get(path_of(tenant))
    inviting = await boss.get(path_of(tenant, "/invitations"))

    offered = {
        "".join(row.find("th").itertext()).strip(): (
            [option.get("value") for option in row.findall(".//option")],
            row.find("td[last()]/a") is not None,
        )
        for row in page.find_all(".//tbody/tr")
    }
    assert offered == {
        "payer@example.org": (["member", "billing"], True),
        "reader@example.org": (["member", "billing"], True),
        "boss@example.org (you)": ([], True),
        "owner@example.org": ([], False),
    }
    assert "owner@example.org Owner" in page.text
    assert [each.get("value") for each in inviting.find_all(".//select[@name='role']/option")] == ["member", "billing"]


async def test_a_role_is_changed(owner: ConsoleClient, tenant: Tenant) -> None:
    page = await owner.follow(await owner.submit(path_of(tenant, "/role"), {"subject_id": "reader", "role": "admin"}))

    assert "The role of reader@example.org was changed." in page.text
    assert (await roles(tenant))["reader"] == "admin"


@pytest.mark.parametrize(
    ("person", "changed", "role", "code"),
    [
        ("owner", "owner", "member", "last_owner"),
        ("owner", "reader", "king", "validation_failed"),
        ("owner", "nobody", "member", "member_not_found"),
        ("boss", "reader", "owner", "forbidden"),
        ("boss", "owner", "member", "forbidden"),
        ("reader", "reader", "owner", "forbidden"),
    ],
)
async def test_a_refused_role_changes_nothing(
    visitors: ConsoleClient,
    people: People,
    tenant: Tenant,
    clock: FakeClock,
    person: str,
    changed: str,
    role: str,
    code: str,
) -> None:
    before = await roles(tenant)
    visitors.sign_in_as(people, person, clock.now())

    page = await visitors.submit(path_of(tenant, "/role"), {"subject_id": changed, "role": role})

    assert page.trouble == code
    assert page.value("role") == role
    assert await roles(tenant) == before


async def test_a_form_that_names_no_member_is_malformed(
    owner: ConsoleClient, tenant: Tenant, subtests: pytest.Subtests
) -> None:
    """The id is a part of the path of a call to Core."""
    for fields in [{}, {"subject_id": ""}, {"subject_id": "."}, {"subject_id": ".."}]:
        for rest in ["/role", "/remove"]:
            with subtests.test(fields=fields, rest=rest):
                before = await roles(tenant)

                page = await owner.submit(path_of(tenant, rest), {**fields, "role": "member"})

                assert (page.status, page.trouble) == (400, "form_malformed")
                assert await roles(tenant) == before


async def test_there_is_no_removal_of_nobody(owner: ConsoleClient, tenant: Tenant) -> None:
    page = await owner.get(path_of(tenant, "/remove"))

    assert (page.status, page.trouble) == (404, "page_not_found")


@pytest.mark.parametrize("subject_id", ["reader", STRANGE])
async def test_a_member_is_removed_after_the_confirmation(
    owner: ConsoleClient, tenant: Tenant, rival: Rival, subject_id: str
) -> None:
    if subject_id == STRANGE:
        await tenant.make_member(rival, STRANGE, "member")
    listed = await owner.get(path_of(tenant))
    [link] = [
        str(row.find(".//a").get("href"))
        for row in listed.find_all(".//tbody/tr")
        if row.find(".//input[@name='subject_id']").get("value") == subject_id
    ]
    asked = await owner.get(link)
    assert f"Remove {subject_id}@example.org" in asked.text
    assert subject_id in await roles(tenant)

    page = await owner.follow(await owner.submit(link, {"subject_id": asked.value("subject_id")}))

    assert "The member was removed." in page.text
    assert subject_id not in await roles(tenant)
    assert "This person is no longer a member." in (await owner.get(link)).text


@pytest.mark.parametrize("person", ["boss", "reader", "payer"])
async def test_every_member_can_leave(
    visitors: ConsoleClient, people: People, tenant: Tenant, clock: FakeClock, person: str
) -> None:
    visitors.sign_in_as(people, person, clock.now())
    page = await visitors.get(path_of(tenant))
    links = [str(link.get("href")) for link in page.find_all(".//main//a")]
    [link] = [each for each in links if each.endswith(f"remove?subject_id={person}")]
    asked = await visitors.get(link)
    assert asked.heading == "Leave Radio Nordlicht"
    way_back = str(asked.find_all(".//main//a")[-1].get("href"))
    assert (await visitors.get(way_back)).status == 200

    left = await visitors.submit(link, {"subject_id": asked.value("subject_id")})

    assert left.location == "/organizations"
    assert "You have left Radio Nordlicht." in (await visitors.follow(left)).text
    assert person not in await roles(tenant)
    assert (await visitors.get(path_of(tenant))).status == 404


async def test_the_last_owner_cannot_leave(owner: ConsoleClient, tenant: Tenant) -> None:
    page = await owner.submit(path_of(tenant, "/remove"), {"subject_id": "owner"})

    assert (page.status, page.trouble) == (409, "last_owner")
    assert "Make another member an owner first." in page.text
    assert page.value("subject_id") == "owner"
    assert "owner" in await roles(tenant)


@pytest.mark.parametrize("person", ["reader", "payer"])
async def test_a_member_is_shown_no_other_and_removes_nobody(
    visitors: ConsoleClient, people: People, tenant: Tenant, clock: FakeClock, person: str
) -> None:
    visitors.sign_in_as(people, person, clock.now())

    page = await visitors.get(path_of(tenant))
    removed = await visitors.submit(path_of(tenant, "/remove"), {"subject_id": "boss"})

    assert (page.status, page.trouble) == (403, "forbidden")
    assert "boss" not in page.text
    assert (removed.status, removed.trouble) == (403, "forbidden")
    assert "boss" in await roles(tenant)


async def test_hostile_values_of_the_identity_provider_are_text(
    owner: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_member(rival, STRANGE, "member")

    page = await owner.get(path_of(tenant))

    assert f"{STRANGE}@example.org" in page.text
    assert not page.find_all(".//main//b")


async def test_a_core_that_is_down_keeps_what_was_chosen(owner: ConsoleClient, tenant: Tenant) -> None:
    owner.core.refuse("PUT /v1/members/reader", 503, "database_unavailable")

    page = await owner.submit(path_of(tenant, "/role"), {"subject_id": "reader", "role": "admin"})

    assert (page.status, page.trouble) == (503, "database_unavailable")
    assert (page.value("subject_id"), page.value("role")) == ("reader", "admin")
    assert (await owner.submit(path_of(tenant, "/remove"), {"subject_id": "reader"})).status == 303


async def test_the_pages_speak_french(
    visitors: ConsoleClient, people: People, tenant: Tenant, clock: FakeClock
) -> None:
    french = visitors.other(language="fr").sign_in_as(people, "owner", clock.now())

    assert "Ce que permettent les rôles" in (await french.get(path_of(tenant))).text
    assert "Quitter Radio Nordlicht" in (await french.get(path_of(tenant, "/remove?subject_id=owner"))).text
