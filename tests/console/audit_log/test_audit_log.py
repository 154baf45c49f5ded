"""The pages of the audit log."""

import asyncio
import csv
import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.console.audit_actions import ACTIONS
from soundmark.console.language import LOCALES, get_language

OPENAPI = json.loads((Path(__file__).parents[2] / "golden/openapi.json").read_text(encoding="utf-8"))
HOSTILE = '=cmd|"<script>alert(1)</script>'


def path_of(tenant: Tenant, rest: str = "") -> str:
    return f"/organizations/{tenant.organization_id}/audit-log{rest}"


def read_actions(page: PageAnswer) -> list[str]:
    return ["".join(cell.itertext()) for cell in page.find_all(".//tbody/tr/th")]


def read_facts(page: PageAnswer) -> dict[str, str]:
    """Return the first list of names and values on a page."""
    facts = page.find(".//dl")
    names, values = facts.findall("dt"), facts.findall("dd")
    return {"".join(name.itertext()): "".join(value.itertext()) for name, value in zip(names, values, strict=True)}


async def wait_for_seals(tenant: Tenant) -> dict[str, Any]:
    """Return the verification once every entry is sealed."""
    async with asyncio.timeout(60):
        while True:
            answer = await tenant.api.get("/v1/audit-log/verification", params=tenant.query)
            verification: dict[str, Any] = answer.json
            if not verification["unsealed"]:
                return verification


def test_every_published_action_has_a_name_in_every_language() -> None:
    parameters = OPENAPI["paths"]["/v1/audit-log"]["get"]["parameters"]
    [schema] = [each["schema"] for each in parameters if each["name"] == "action"]

    assert sorted(schema["enum"]) == list(ACTIONS)
    for code in LOCALES:
        names = {get_language(code).say(f"audit_log.action.{action}") for action in ACTIONS}
        assert len(names) == len(ACTIONS)


async def test_entries_are_shown_in_words_newest_first(operator: ConsoleClient, tenant: Tenant) -> None:
    await tenant.make_campaign("Tonight")

    page = await operator.get(path_of(tenant))

    assert read_actions(page) == ["Campaign created", "Project created", "Organisation created"]
    assert "person: operator@localhost" in page.text
    assert "completed" in page.text
    facts = read_facts(page)
    assert (facts["name"], facts["starts_at"]) == ("Tonight", "none")


async def test_a_colon_is_written_as_french_writes_it(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    assert "personne\u00a0: <a" in (await french.get(path_of(tenant))).html


async def test_an_action_of_a_later_release_is_shown_as_it_is_called(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await rival.run("UPDATE audit_entries SET action = 'moon.landed' WHERE action = 'project.created'")

    assert read_actions(await operator.get(path_of(tenant))) == ["moon.landed", "Organisation created"]


async def test_the_filters_narrow_the_list_and_stay_in_their_fields(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_campaign("Tonight")
    await rival.run("UPDATE audit_entries SET created_at = '2026-01-02T10:00:00Z' WHERE action = 'project.created'")
    query = "?from=2026-01-02T11:00&from_zone=Europe/Paris&to=2026-01-02T10:01&action=project.created&actor=operator"

    page = await operator.get(path_of(tenant, query))

    assert read_actions(page) == ["Project created"]
    assert (page.value("from"), page.value("from_zone")) == ("2026-01-02T11:00", "Europe/Paris")
    assert (page.value("action"), page.value("actor")) == ("project.created", "operator")
    for other in ("?actor=somebody", "?action=code.issued", "?from=2026-01-02T10:00:01&to=2026-01-03T00:00"):
        assert "No entries match." in (await operator.get(path_of(tenant, other))).text
    exclusive = await operator.get(path_of(tenant, "?from=2026-01-02T09:00&to=2026-01-02T10:00"))
    assert "No entries match." in exclusive.text


async def test_a_name_leads_to_the_entries_of_that_person(operator: ConsoleClient, tenant: Tenant) -> None:
    key = await tenant.make_key()
    await tenant.with_key(key).make_code()
    page = await operator.get(path_of(tenant))
    [link] = [str(a.get("href")) for a in page.find_all(".//tbody//a") if a.text == key["id"]]

    assert read_actions(await operator.get(link)) == ["Code issued"]


async def test_long_lists_have_pages(operator: ConsoleClient, tenant: Tenant) -> None:
    for number in range(101):
        await tenant.make_campaign(f"Campaign {number}")
    first = await operator.get(path_of(tenant, "?action=campaign.created"))
    assert len(read_actions(first)) == 100

    second = await operator.get(first.find(".//a[@rel='next']").get("href") or "")

    assert read_actions(second) == ["Campaign created"]
    assert second.value("action") == "campaign.created"


@pytest.mark.parametrize(
    ("query", "name", "typed"),
    [("?from=yesterday&actor=ada", "from", "yesterday"), ("?actor=" + "a" * 256, "actor", "a" * 256)],
)
async def test_a_refused_filter_is_shown_again_with_what_was_typed(
    operator: ConsoleClient, tenant: Tenant, query: str, name: str, typed: str
) -> None:
    page = await operator.get(path_of(tenant, query))

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert page.find(f".//p[@id='refused-{name}']").text
    assert page.value(name) == typed
    assert read_actions(page) == []


async def test_hostile_names_are_text_on_the_page_and_in_the_file(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    """A subject id is whatever the identity provider says; a spreadsheet would compute it."""
    await tenant.make_campaign(HOSTILE)
    await rival.run("UPDATE audit_entries SET actor_id = %s WHERE action = 'project.created'", HOSTILE)

    page = await operator.get(path_of(tenant))
    file = await operator.get(path_of(tenant, "/download?format=csv"))

    assert page.text.count(HOSTILE) == 2
    assert not page.find_all(".//body//script")
    rows = list(csv.DictReader(io.StringIO(file.html)))
    [hostile] = [row for row in rows if HOSTILE in row["actor_id"]]
    assert hostile["actor_id"] == f"'{HOSTILE}"
    assert not [cell for row in rows for cell in row.values() if cell.startswith("=")]


async def test_what_matches_the_filters_is_downloaded_whole(operator: ConsoleClient, tenant: Tenant) -> None:
    for number in range(3):
        await tenant.make_campaign(f"Campaign {number}")
    page = await operator.get(path_of(tenant, "?action=campaign.created&actor=operator"))
    links = {link.text: str(link.get("href")) for link in page.find_all(".//a[@class='button second']")}

    lines, rows = await operator.get(links["NDJSON"]), await operator.get(links["CSV"])

    entries = [json.loads(line) for line in lines.html.splitlines()]
    assert [entry["metadata"]["name"] for entry in entries] == ["Campaign 2", "Campaign 1", "Campaign 0"]
    assert lines.headers["content-disposition"] == (f'attachment; filename="{tenant.organization_id}.audit-log.ndjson"')
    assert rows.headers["content-type"].startswith("text/csv")
    read = list(csv.DictReader(io.StringIO(rows.html)))
    assert [row["id"] for row in read] == [entry["id"] for entry in entries]


async def test_an_unaltered_log_is_verified(operator: ConsoleClient, tenant: Tenant) -> None:
    verification = await wait_for_seals(tenant)

    page = await operator.get(path_of(tenant, "/verification"))

    assert page.find(".//*[@data-verified]").get("data-verified") == "yes"
    entries = str(verification["entries"])
    assert read_facts(page) == {"Entries": entries, "Not sealed yet": "0", "First altered entry": "none"}


async def test_an_altered_entry_is_named(operator: ConsoleClient, tenant: Tenant, rival: Rival) -> None:
    await wait_for_seals(tenant)
    await rival.run("UPDATE audit_entries SET actor_id = 'eve' WHERE action = 'project.created'")
    [(altered,)] = await rival.rows("SELECT id FROM audit_entries WHERE action = 'project.created'")

    page = await operator.get(path_of(tenant, "/verification"))

    assert page.find(".//*[@data-verified]").get("data-verified") == "no"
    assert "The log was altered." in page.text
    assert altered in page.text


async def test_a_member_reads_nothing(visitors: ConsoleClient, people: People, rival: Rival, clock: FakeClock) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "reader", "member")
    visitors.sign_in_as(people, "reader", clock.now())

    for rest in ("", "/verification", "/download?format=csv"):
        page = await visitors.get(path_of(tenant, rest))
        assert (page.status, page.trouble) == (403, "forbidden")
        assert "owner" not in page.find(".//main/h1").text


async def test_a_core_that_is_down_offers_the_same_page_again(operator: ConsoleClient, tenant: Tenant) -> None:
    await operator.get(path_of(tenant))
    operator.core.go_down()

    page = await operator.get(path_of(tenant, "?actor=operator"))

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert page.find(".//main//a[@class='button']").get("href") == path_of(tenant, "?actor=operator")
    assert not page.find_all(".//main//form"), "nothing was typed that would have to be sent"


async def test_the_pages_speak_french(operator: ConsoleClient, tenant: Tenant, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now() - timedelta(minutes=1))

    assert read_actions(await french.get(path_of(tenant))) == ["Projet créé", "Organisation créée"]
    await wait_for_seals(tenant)
    assert "Le journal est intact." in (await french.get(path_of(tenant, "/verification"))).text
