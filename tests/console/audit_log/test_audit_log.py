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

from soundmark.console.audit_actions import ACTIONS, SUBJECTS
from soundmark.console.language import LOCALES, get_language

OPENAPI = json.loads((Path(__file__).parents[2] / "golden/openapi.json").read_text(encoding="utf-8"))
HOSTILE = '=cmd|"<script>alert(1)</script>'


def path_of(tenant: Tenant, rest: str = "") -> str:
    return f"/organizations/{tenant.organization_id}/audit-log{rest}"


def read_sentences(page: PageAnswer) -> list[str]:
    return ["".join(cell.itertext()) for cell in page.find_all(".//tbody/tr/th")]


def read_actions(page: PageAnswer) -> list[str]:
    """Return the actions as Core names them, which the details of each entry have."""
    return [str(facts.findtext("dd/code")) for facts in page.find_all(".//tbody/tr//dl")]


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


async def test_entries_are_sentences_with_links_newest_first(operator: ConsoleClient, tenant: Tenant) -> None:
    key = await tenant.make_key()
    campaign = await tenant.make_campaign("Tonight")

    page = await operator.get(path_of(tenant))

    assert read_sentences(page) == [
        f"operator@localhost created the campaign {campaign['id']}",
        f"operator@localhost created the API key {key['id']}",
        f"operator@localhost created the project {tenant.project_id}",
        "operator@localhost created the organisation",
    ]
    of_project = f"/organizations/{tenant.organization_id}/projects/{tenant.project_id}"
    links = [str(a.get("href")) for a in page.find_all(".//tbody/tr/th/a")]
    of_key, of_actor = f"{of_project}/api-keys#{key['id']}", f"{path_of(tenant)}?actor=operator"
    assert {f"{of_project}/campaigns/{campaign['id']}", of_key, of_project, of_actor} == {*links}
    facts = read_facts(page)
    assert (facts["Name"], facts["Starts"]) == ("Tonight", "none")


async def test_every_action_is_a_sentence_in_every_language(
    operator: ConsoleClient, tenant: Tenant, clock: FakeClock
) -> None:
    """The table of actions says which member of the metadata names what was acted on; the sentence must use it."""
    for code in LOCALES:
        language = get_language(code)
        for action, subject in SUBJECTS.items():
            sentence = language.mark(f"audit_log.sentence.{action}", actor="ACTOR", subject="SUBJECT")
            assert sentence.startswith("ACTOR "), action
            assert ("SUBJECT" in sentence) == (subject is not None), action
    french = operator.other(language="fr").sign_in_as_operator(clock.now())
    assert "operator@localhost a créé l’organisation" in read_sentences(await french.get(path_of(tenant)))


async def test_an_entry_without_what_its_sentence_names_has_its_action_as_title(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await rival.run("UPDATE audit_entries SET action = 'moon.landed' WHERE action = 'project.created'")
    await rival.run("UPDATE audit_entries SET action = 'code.revoked' WHERE action = 'organization.created'")

    page = await operator.get(path_of(tenant))

    assert read_sentences(page) == ["operator@localhost: moon.landed", "operator@localhost: Code revoked"]


async def test_an_outcome_is_marked_only_where_it_is_not_as_expected(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await rival.run("UPDATE audit_entries SET outcome = 'failed' WHERE action = 'project.created'")

    first, second = read_sentences(await operator.get(path_of(tenant)))

    assert first.endswith(" failed")
    assert second == "operator@localhost created the organisation"


async def test_who_did_it_is_found_by_a_part_of_their_address(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_member(rival, "ada-1", "member")
    await tenant.make_member(rival, "al-1", "member")
    await rival.run("UPDATE audit_entries SET actor_id = 'ada-1' WHERE action = 'project.created'")

    page = await operator.get(path_of(tenant, "?actor=ADA-"))
    file = await operator.get(path_of(tenant, "/download?format=ndjson&actor=ADA-"))
    several = await operator.get(path_of(tenant, "?actor=example.org"))

    assert read_actions(page) == ["project.created"]
    assert page.value("actor") == "ADA-"
    assert [json.loads(line)["action"] for line in file.html.splitlines()] == ["project.created"]
    assert (several.status, several.find(".//p[@id='refused-actor']").text) == (
        422,
        "Several members match. Type more of the address.",
    )


async def test_the_filters_narrow_the_list_and_stay_in_their_fields(
    operator: ConsoleClient, tenant: Tenant, rival: Rival
) -> None:
    await tenant.make_campaign("Tonight")
    await rival.run("UPDATE audit_entries SET created_at = '2026-01-02T10:00:00Z' WHERE action = 'project.created'")
    query = "?from=2026-01-02T11:00&from_zone=Europe/Paris&to=2026-01-02T10:01&action=project.created&actor=operator"

    page = await operator.get(path_of(tenant, query))

    assert read_actions(page) == ["project.created"]
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
    [link] = [str(a.get("href")) for a in page.find_all(".//tbody//a") if a.get("title") == key["id"]]

    assert read_actions(await operator.get(link)) == ["code.issued"]


async def test_long_lists_have_pages(operator: ConsoleClient, tenant: Tenant) -> None:
    for number in range(51):
        await tenant.make_campaign(f"Campaign {number}")
    first = await operator.get(path_of(tenant, "?action=campaign.created"))
    assert len(read_actions(first)) == 50

    second = await operator.get(first.find(".//a[@rel='next']").get("href") or "")

    assert read_actions(second) == ["campaign.created"]
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

    assert "Organisation créée" in (await french.get(path_of(tenant))).text
    await wait_for_seals(tenant)
    assert "Le journal est intact." in (await french.get(path_of(tenant, "/verification"))).text


async def test_a_time_zone_alone_is_no_filter(operator: ConsoleClient, tenant: Tenant) -> None:
    """A script sends the zone of each time, also of those that were left empty."""
    sent = "?actor=&action=&from=&from_zone=Europe%2FParis&to=&to_zone=Europe%2FParis"

    assert "Show all entries" not in (await operator.get(path_of(tenant, sent))).text
    filtered = await operator.get(path_of(tenant, sent.replace("from=&", "from=2020-01-01T00:00&")))
    assert "Show all entries" in filtered.text
    download = str(filtered.find(".//a[@class='button second'][2]").get("href"))
    assert ("from_zone=" in download, "to_zone=" in download) == (True, False)


async def test_an_id_in_a_sentence_leads_to_what_it_names_or_is_copied(operator: ConsoleClient, tenant: Tenant) -> None:
    invitation, pack = await tenant.make_invitation(), await tenant.make_pack()

    page = await operator.get(path_of(tenant))

    marked = page.find_all(".//tbody/tr/th//code")
    assert [each.get("title") for each in marked if each.get("data-copy-value") is not None] == [pack["pack_id"]]
    links = [str(a.get("href")) for a in page.find_all(".//tbody/tr/th/a")]
    assert f"/organizations/{tenant.organization_id}/members/invitations#{invitation['id']}" in links
