"""What each role may do with Codes, as its pages say."""

from collections.abc import Awaitable, Callable

import pytest
from support.console.client import ConsoleClient, MakeFields
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

Enter = Callable[[str], Awaitable[ConsoleClient]]


@pytest.fixture
async def owned(people: People) -> Tenant:
    """A project of a person."""
    return await people.tenant_of("owner")


@pytest.fixture
def there(owned: Tenant) -> str:
    """The path of its Codes."""
    return f"/organizations/{owned.organization_id}/projects/{owned.project_id}/codes"


@pytest.fixture
def enter(visitors: ConsoleClient, people: People, owned: Tenant, rival: Rival, clock: FakeClock) -> Enter:
    """Return what lets a person join the project's organisation in a role, and signs them in."""

    async def join(role: str) -> ConsoleClient:
        await people.member(owned, rival, role, role)
        return visitors.sign_in_as(people, role, clock.now())

    return join


async def test_a_member_reads_and_plays_but_neither_issues_nor_revokes(
    enter: Enter, owned: Tenant, there: str, fields: MakeFields
) -> None:
    code = await owned.make_code()
    visitors = await enter("member")

    page = await visitors.get(there)
    assert code["xr_id"] in page.text
    assert not page.find_all(f".//a[@href='{there}/issue']")
    assert not page.find_all(".//button[@formaction]")
    detail = await visitors.get(f"{there}/{code['xr_id']}")
    assert not [each for each in detail.find_all(".//a") if str(each.get("href")).endswith("/revoke")]
    assert (await visitors.get(f"{there}/{code['xr_id']}/sound.wav")).status == 200
    for path, sent in (
        ("issue", fields()),
        (f"{code['xr_id']}/revoke", {}),
        ("revoke", {"xr_ids": [code["xr_id"]]}),
    ):
        answer = await visitors.submit(f"{there}/{path}", sent)
        assert (answer.status, answer.trouble) == (403, "forbidden"), path
    listed = (await owned.api.get("/v1/codes", params=owned.in_project)).json["data"]
    assert [each["status"] for each in listed] == ["active"]


async def test_a_member_who_may_not_issue_keeps_what_was_typed(enter: Enter, there: str, fields: MakeFields) -> None:
    visitors = await enter("member")

    answer = await visitors.submit(f"{there}/issue", fields(issuer="Radio Süd"))

    assert answer.value("issuer") == "Radio Süd"
    verdict = (await visitors.submit(f"{there}/issue/verdict", fields())).response.json()
    assert verdict["would_issue"] is False


async def test_the_billing_role_sees_no_codes(enter: Enter, owned: Tenant, there: str) -> None:
    code = await owned.make_code()
    visitors = await enter("billing")

    for path in (there, f"{there}/{code['xr_id']}", f"{there}/{code['xr_id']}/sound.wav"):
        page = await visitors.get(path)
        assert (page.status, page.trouble) == (403, "forbidden")
        assert code["xr_id"] not in page.find(".//main").itertext()


async def test_an_administrator_issues(enter: Enter, there: str, fields: MakeFields) -> None:
    visitors = await enter("admin")

    assert "1 Code was issued." in (await visitors.follow(await visitors.submit(f"{there}/issue", fields()))).text


async def test_revoking_a_selection_without_a_second_factor_asks_for_it(
    visitors: ConsoleClient, people: People, owned: Tenant, there: str, clock: FakeClock
) -> None:
    code = await owned.make_code()
    visitors.sign_in_as(people, "owner", clock.now(), acr="1")

    answer = await visitors.submit(f"{there}/revoke", {"xr_ids": [code["xr_id"]]})

    assert answer.status == 403
    assert "second factor" in answer.text
    listed = (await owned.api.get("/v1/codes", params=owned.in_project)).json["data"]
    assert listed[0]["status"] == "active"


async def test_a_stranger_finds_no_such_page(
    visitors: ConsoleClient, people: People, owned: Tenant, there: str, *, clock: FakeClock, fields: MakeFields
) -> None:
    code = await owned.make_code()
    visitors.sign_in_as(people, "stranger", clock.now())

    for path in ("", f"/{code['xr_id']}", f"/{code['xr_id']}/sound.wav", "/issue", "/recover"):
        assert (await visitors.get(f"{there}{path}")).status == 404
    assert (await visitors.submit(f"{there}/issue", fields())).status == 404
    assert (await visitors.submit(f"{there}/{code['xr_id']}/revoke")).status == 404


async def test_nobody_enters_without_a_session(visitors: ConsoleClient, there: str) -> None:
    assert (await visitors.get(f"{there}/issue?campaign_id=cmp_x")).location.startswith("/sign-in?return_to=")
