"""The page of a project's allowed hosts: each state of the list, who sees and changes it, and what is refused."""

from typing import Any

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant


def path_of(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}/allowed-hosts"


async def read_hosts(tenant: Tenant) -> list[str] | None:
    path = f"/v1/projects/{tenant.project_id}/allowed-hosts"
    hosts: list[str] | None = (await tenant.api.get(path, params=tenant.query)).json["hosts"]
    return hosts


def entries(page: PageAnswer) -> list[str | None]:
    return [each.get("value") for each in page.find_all(".//input[@name='hosts']")]


def chosen(page: PageAnswer) -> str | None:
    return page.find(".//input[@name='mode'][@checked]").get("value")


async def test_each_state_of_the_list_is_shown(operator: ConsoleClient, tenant: Tenant) -> None:
    fresh = await operator.get(path_of(tenant))
    assert (chosen(fresh), entries(fresh)) == ("any", [])
    assert "Last changed" not in fresh.text

    await tenant.allow_hosts([])
    empty = await operator.get(path_of(tenant))
    assert (chosen(empty), entries(empty)) == ("listed", [])
    assert "An empty list allows no link." in empty.text

    await tenant.allow_hosts(["example.org", "*.example.org"])
    listed = await operator.get(path_of(tenant))
    assert (chosen(listed), entries(listed)) == ("listed", ["example.org", "*.example.org"])
    assert "Last changed" in listed.text


async def test_hosts_are_added_changed_removed_and_lifted(operator: ConsoleClient, tenant: Tenant) -> None:
    settings = await operator.get(f"{path_of(tenant).removesuffix('/allowed-hosts')}/settings")
    assert settings.find_all(f".//a[@href='{path_of(tenant)}']")
    for sent, expected in (
        (
            {"mode": "listed", "added": "Example.org\r\n www.example.org, a.example;b.example"},
            ["example.org", "www.example.org", "a.example", "b.example"],
        ),
        ({"mode": "listed", "hosts": ["example.org", "", "*.example.net"]}, ["example.org", "*.example.net"]),
        ({"mode": "listed", "hosts": ["example.org"], "added": "c.example"}, ["example.org", "c.example"]),
        ({"mode": "listed", "hosts": [""]}, []),
        ({"mode": "any", "hosts": ["example.org"]}, None),
    ):
        page = await operator.follow(await operator.submit(path_of(tenant), sent))
        assert "The allowed hosts were saved." in page.text
        assert await read_hosts(tenant) == expected
        assert entries(page) == (expected or [])


async def test_a_refused_entry_is_shown_with_its_reason_beside_it_and_nothing_is_lost(
    operator: ConsoleClient, tenant: Tenant
) -> None:
    await tenant.allow_hosts(["example.org"])
    sent = {"mode": "listed", "hosts": ["example.org", "https://b.example"], "added": "c.example"}

    page = await operator.submit(path_of(tenant), sent)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert entries(page) == ["example.org", "https://b.example", "c.example"]
    assert chosen(page) == "listed"
    invalid = page.find(".//input[@aria-invalid='true']")
    assert invalid.get("value") == "https://b.example"
    [_, reason_id] = str(invalid.get("aria-describedby")).split()
    reason = page.find(f".//p[@id='{reason_id}']")
    assert (reason.text or "").startswith("Enter a DNS name without https://")
    assert not page.find_all(".//p[@id='refused-hosts']")
    assert await read_hosts(tenant) == ["example.org"]


async def test_a_refusal_of_the_whole_list_stands_above_it(operator: ConsoleClient, tenant: Tenant) -> None:
    for added, reason in (
        ("a.example A.example", "This list contains a host twice."),
        (" ".join(f"h{number}.example" for number in range(101)), "Choose at most 100."),
    ):
        page = await operator.submit(path_of(tenant), {"mode": "listed", "added": added})

        assert page.status == 422
        assert reason in (page.find(".//p[@id='refused-hosts']").text or "")
        assert entries(page) == added.split()
    assert await read_hosts(tenant) is None


async def test_what_was_typed_is_kept_when_core_cannot_be_reached(operator: ConsoleClient, tenant: Tenant) -> None:
    operator.core.lose(f"PUT /v1/projects/{tenant.project_id}/allowed-hosts")

    page = await operator.submit(path_of(tenant), {"mode": "listed", "added": "a.example"})

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert (chosen(page), entries(page)) == ("listed", ["a.example"])


@pytest.mark.parametrize(
    ("now", "words"),
    [(["b.example", "c.example"], "b.example, c.example"), ([], "No host is allowed"), (None, "to any host.")],
)
async def test_a_list_that_somebody_else_changed_meanwhile_is_not_replaced_unseen(
    operator: ConsoleClient, tenant: Tenant, now: list[str] | None, words: str
) -> None:
    """The other person may have withdrawn a host that must not be allowed again."""
    await tenant.allow_hosts(["stolen.example"])
    stale = await operator.get(path_of(tenant))
    await tenant.allow_hosts(now)
    sent = {"mode": "listed", "hosts": ["stolen.example", "d.example"], "shown": stale.value("shown")}

    page = await operator.submit(path_of(tenant), sent)

    assert (page.status, page.trouble, entries(page)) == (409, "hosts_changed", ["stolen.example", "d.example"])
    assert words in "".join(page.find(".//section[@id='trouble']").itertext())
    assert await read_hosts(tenant) == now
    assert (await operator.submit(path_of(tenant), {**sent, "shown": page.value("shown")})).status == 303
    assert await read_hosts(tenant) == ["stolen.example", "d.example"]


async def test_members_who_may_not_change_the_hosts_can_read_them(
    visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    sent: dict[str, Any] = {"mode": "listed", "added": "evil.example"}
    for role in ("member", "billing"):
        await people.member(tenant, rival, role, role)
        visitors.sign_in_as(people, role, clock.now())
        for hosts, expected in (
            (None, "Links may lead to any host."),
            ([], "No host is allowed: this project issues no Codes with links."),
            (["example.org"], "example.org"),
        ):
            await tenant.allow_hosts(hosts)
            page = await visitors.get(path_of(tenant))
            assert "".join(page.find(".//*[@id='allowed']").itertext()) == expected
            assert not page.find_all(".//main//form")
        refused = await visitors.submit(path_of(tenant), sent)
        assert (refused.status, refused.trouble) == (403, "forbidden")
        assert entries(refused) == ["evil.example"]
        assert await read_hosts(tenant) == ["example.org"]


async def test_changing_the_hosts_without_a_second_factor_asks_for_it(
    visitors: ConsoleClient, people: People, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    visitors.sign_in_as(people, "owner", clock.now(), acr="1")

    page = await visitors.submit(path_of(tenant), {"mode": "listed", "added": "a.example"})

    assert page.status == 403
    assert "second factor" in page.text
    assert await read_hosts(tenant) is None
