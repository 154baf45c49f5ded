"""The pages of support tickets."""

from typing import Any

import pytest
from support.api.core_client import Api
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

HOSTILE_SUBJECT = "</h1><script>alert(1)</script> \"'& {{ 7*7 }}"
HOSTILE_MESSAGE = "</textarea><script>alert(1)</script>\n  <b>second</b> line\n\nlast"


def tickets_path(tenant: Tenant) -> str:
    return f"/organizations/{tenant.organization_id}/tickets"


async def fill_in(client: ConsoleClient, tenant: Tenant, **changes: str) -> dict[str, str]:
    """Return the fields of the form that this browser was just shown, filled in."""
    shown = await client.get(f"{tickets_path(tenant)}/new")
    return {"request_id": shown.value("request_id"), "subject": "No sound", "message": "Why?", **changes}


async def send(client: ConsoleClient, tenant: Tenant, fields: dict[str, str]) -> PageAnswer:
    return await client.submit(f"{tickets_path(tenant)}/new", fields)


async def conversations(desk: RunningSandbox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await desk.look("desk"))["conversations"]
    return found


async def test_a_ticket_is_sent_listed_and_shown(operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox) -> None:
    empty = await operator.get(tickets_path(tenant))
    assert "No tickets yet." in empty.text

    page = await operator.follow(await send(operator, tenant, await fill_in(operator, tenant)))

    assert "Your message was sent." in page.text
    assert page.find(".//h1").text == "No sound"
    assert "open" in page.text
    [row] = (await operator.get(tickets_path(tenant))).find_all(".//tbody/tr")
    assert row.findtext("./th/a/bdi") == "No sound"
    assert len(await conversations(desk)) == 1


async def test_every_shown_form_is_a_ticket_of_its_own(operator: ConsoleClient, tenant: Tenant) -> None:
    request_ids = {(await fill_in(operator, tenant))["request_id"] for _ in range(3)}

    assert len(request_ids) == 3


async def test_a_double_click_is_one_ticket(operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox) -> None:
    fields = await fill_in(operator, tenant)

    first, second = await send(operator, tenant, fields), await send(operator, tenant, fields)

    assert first.location == second.location
    assert len(await conversations(desk)) == 1


async def test_the_conversation_is_shown_as_text_with_its_lines(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox
) -> None:
    fields = await fill_in(operator, tenant, subject=HOSTILE_SUBJECT, message=HOSTILE_MESSAGE.replace("\n", "\r\n"))
    sent = await send(operator, tenant, fields)
    [conversation] = await conversations(desk)
    await desk.control(f"/desk/conversations/{conversation['id']}/reply", text="Try <i>again</i>\nand again")

    page = await operator.follow(sent)

    assert page.find(".//h1").text == HOSTILE_SUBJECT
    texts = [each.text for each in page.find_all(".//p[@class='message-text']")]
    assert texts == [HOSTILE_MESSAGE, "Try <i>again</i>\nand again"]
    assert not page.find_all(".//body//script")
    authors = [" ".join("".join(each.itertext()).split()) for each in page.find_all(".//article/h2")]
    assert authors[0].startswith("You and your organisation")
    assert authors[1].startswith("Support")


async def test_characters_that_html_forbids_are_shown_as_such(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox
) -> None:
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body(message="a\x07b"))
    assert len(await conversations(desk)) == 1

    page = await operator.get(f"{tickets_path(tenant)}/{opened.json['id']}")

    assert page.find(".//p[@class='message-text']").text == "a\N{REPLACEMENT CHARACTER}b"


async def test_a_desk_that_is_down_keeps_the_message_and_the_repeat_is_the_same_ticket(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox, clock: FakeClock
) -> None:
    fields = await fill_in(operator, tenant, message=HOSTILE_MESSAGE)
    await desk.misbehave("desk", "lost_answer", operation="create_conversation")
    await desk.misbehave("desk", "down", times=0)

    page = await send(operator, tenant, fields)

    assert (page.status, page.trouble) == (503, "support_unavailable")
    kept = {name: page.value(name) for name in ("request_id", "subject", "message")}
    assert kept == fields
    assert "Send it again unchanged" in page.text
    await desk.control("/switches/reset")
    clock.advance(minutes=1)
    assert "Your message was sent." in (await operator.follow(await send(operator, tenant, kept))).text
    assert len(await conversations(desk)) == 1


async def test_a_core_that_is_down_keeps_the_message(operator: ConsoleClient, tenant: Tenant) -> None:
    fields = await fill_in(operator, tenant)
    operator.core.go_down()

    page = await send(operator, tenant, fields)

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert {name: page.value(name) for name in fields} == fields


async def test_the_list_is_there_while_the_desk_is_down_and_a_ticket_says_why_it_is_not(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox
) -> None:
    sent = await send(operator, tenant, await fill_in(operator, tenant))
    await desk.misbehave("desk", "down", times=0)

    assert "No sound" in (await operator.get(tickets_path(tenant))).text
    page = await operator.get(sent.location)

    assert (page.status, page.trouble) == (503, "support_unavailable")
    assert "Your message" not in page.text, "a reader sent none"


async def test_without_a_desk_nothing_is_lost(operator: ConsoleClient, tenant: Tenant, api: Api) -> None:
    assert (await put_setting(api, "support_desk_base_url", None)).status == 200

    page = await send(operator, tenant, await fill_in(operator, tenant))

    assert (page.status, page.value("message")) == (503, "Why?")


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"subject": " "}, "subject"), ({"subject": "s" * 201}, "subject"), ({"message": ""}, "message")],
)
async def test_a_refused_ticket_is_shown_again(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox, changes: dict[str, str], field: str
) -> None:
    fields = await fill_in(operator, tenant, **changes)

    page = await send(operator, tenant, fields)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert {name: page.value(name) for name in fields} == fields
    assert page.find(f".//*[@id='field-{field}']").get("aria-invalid") == "true"
    assert await conversations(desk) == []


@pytest.mark.parametrize("request_id", ["", "supreq_short", "supreq_" + "a" * 65, "another_" + "a" * 16])
async def test_a_form_that_was_tampered_with_opens_nothing(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox, request_id: str
) -> None:
    fields = await fill_in(operator, tenant, request_id=request_id)

    page = await send(operator, tenant, fields)

    assert (page.status, page.trouble) == (400, "form_malformed")
    assert page.value("request_id") != request_id
    assert page.value("message") == "Why?"
    assert await conversations(desk) == []


async def test_tickets_have_pages(operator: ConsoleClient, tenant: Tenant, rival: Rival, clock: FakeClock) -> None:
    await rival.run(
        "INSERT INTO tickets (organization_id, id, subject_id, request_id, subject, status, conversation_id,"
        " mailbox_id, post_after, created_at) SELECT %s, 'tkt_' || lpad(n::text, 22, '0'), 'operator', 'supreq_' || n,"
        " 'No sound', 'active', n, 1, %s, %s FROM generate_series(1, 101) AS n",
        tenant.organization_id,
        clock.now(),
        clock.now(),
    )

    first = await operator.get(tickets_path(tenant))
    second = await operator.get(str(first.find(".//a[@rel='next']").get("href")))

    assert (len(first.find_all(".//tbody/tr")), len(second.find_all(".//tbody/tr"))) == (100, 1)


async def test_every_member_reads_the_tickets_and_nobody_else(
    visitors: ConsoleClient, people: People, rival: Rival, desk: RunningSandbox, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "mo", "billing")
    visitors.sign_in_as(people, "owner", clock.now())
    sent = await send(visitors, tenant, await fill_in(visitors, tenant))

    mo = visitors.other().sign_in_as(people, "mo", clock.now())
    assert (await mo.get(sent.location)).find(".//h1").text == "No sound"
    stranger = visitors.other().sign_in_as(people, "stranger", clock.now())
    assert (await stranger.get(sent.location)).status == 404
    assert len(await conversations(desk)) == 1


async def test_a_ticket_of_another_organization_is_not_found(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox
) -> None:
    sent = await send(operator, tenant, await fill_in(operator, tenant))
    other = await tenant.api.make_organization()

    page = await operator.get(sent.location.replace(tenant.organization_id, other))

    assert (page.status, page.trouble) == (404, "ticket_not_found")
    assert len(await conversations(desk)) == 1


async def test_the_form_in_french(operator: ConsoleClient, tenant: Tenant, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.get(f"{tickets_path(tenant)}/new")

    assert page.find(".//h1").text == "Nouvelle demande"
