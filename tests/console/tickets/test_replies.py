"""The form with which a member replies to a ticket."""

import pytest
from support.console.client import ConsoleClient, PageAnswer
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

HOSTILE_MESSAGE = "</textarea><script>alert(1)</script>\n  <b>second</b> line\n\nlast"


@pytest.fixture
async def ticket_path(tenant: Tenant, desk: RunningSandbox) -> str:
    """The path of the page of a ticket, which the desk has."""
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert opened.status == 201
    assert await count_threads(desk) == 1
    return f"/organizations/{tenant.organization_id}/tickets/{opened.json['id']}"


async def count_threads(desk: RunningSandbox) -> int:
    (conversation,) = (await desk.look("desk"))["conversations"]
    count: int = conversation["threadsCount"]
    return count


async def fill_in(client: ConsoleClient, path: str, message: str = "It is on.") -> dict[str, str]:
    """Return the fields of the form that this browser was just shown, filled in."""
    return {"request_id": (await client.get(path)).value("request_id"), "message": message}


def messages(page: PageAnswer) -> list[str | None]:
    return [each.text for each in page.find_all(".//p[@class='message-text']")]


async def test_a_reply_is_sent_and_shown_as_text(
    operator: ConsoleClient, desk: RunningSandbox, ticket_path: str
) -> None:
    fields = await fill_in(operator, ticket_path, HOSTILE_MESSAGE.replace("\n", "\r\n"))

    page = await operator.follow(await operator.submit(ticket_path, fields))

    assert "Your reply was sent." in page.text
    assert messages(page) == ["It is quiet.\nWhy?", HOSTILE_MESSAGE]
    assert not page.find_all(".//body//script")
    assert page.value("message") == ""
    assert page.value("request_id") != fields["request_id"], "the next reply is another one"
    assert await count_threads(desk) == 2


async def test_a_double_click_is_one_reply(operator: ConsoleClient, desk: RunningSandbox, ticket_path: str) -> None:
    fields = await fill_in(operator, ticket_path)

    first, second = [await operator.submit(ticket_path, fields) for _ in range(2)]

    assert first.location == second.location == ticket_path
    assert await count_threads(desk) == 2


async def test_a_desk_that_is_down_keeps_the_message_and_the_repeat_is_the_same_reply(
    operator: ConsoleClient, desk: RunningSandbox, ticket_path: str, clock: FakeClock
) -> None:
    fields = await fill_in(operator, ticket_path, HOSTILE_MESSAGE)
    await desk.misbehave("desk", "altered", operation="read_conversation")  # It alters nothing: this call passes.
    await desk.misbehave("desk", "lost_answer", operation="create_thread")
    await desk.misbehave("desk", "down", times=0)

    page = await operator.submit(ticket_path, fields)

    assert (page.status, page.trouble) == (503, "support_unavailable")
    kept = {name: page.value(name) for name in fields}
    assert kept == fields
    assert "Send it again unchanged" in page.text
    await desk.control("/switches/reset")
    clock.advance(minutes=1)
    sent = await operator.follow(await operator.submit(ticket_path, kept))
    assert messages(sent) == ["It is quiet.\nWhy?", HOSTILE_MESSAGE]
    assert await count_threads(desk) == 2


async def test_a_core_that_is_down_keeps_the_message(operator: ConsoleClient, ticket_path: str) -> None:
    fields = await fill_in(operator, ticket_path)
    operator.core.go_down()

    page = await operator.submit(ticket_path, fields)

    assert (page.status, page.trouble) == (503, "core_unreachable")
    assert {name: page.value(name) for name in fields} == fields


@pytest.mark.parametrize("message", ["", "m" * 10_001], ids=["empty", "long"])
async def test_a_refused_reply_is_shown_again_below_the_messages(
    operator: ConsoleClient, desk: RunningSandbox, ticket_path: str, message: str
) -> None:
    fields = await fill_in(operator, ticket_path, message)

    page = await operator.submit(ticket_path, fields)

    assert (page.status, page.trouble) == (422, "validation_failed")
    assert {name: page.value(name) for name in fields} == fields
    assert page.find(".//*[@id='field-message']").get("aria-invalid") == "true"
    assert messages(page) == ["It is quiet.\nWhy?"]
    assert await count_threads(desk) == 1


async def test_a_form_that_was_tampered_with_adds_nothing(
    operator: ConsoleClient, desk: RunningSandbox, ticket_path: str
) -> None:
    fields = await fill_in(operator, ticket_path) | {"request_id": "supreq_short"}

    page = await operator.submit(ticket_path, fields)

    assert (page.status, page.trouble, page.value("message")) == (400, "form_malformed", "It is on.")
    assert page.value("request_id") != "supreq_short"
    assert await count_threads(desk) == 1


async def test_a_reply_to_a_ticket_of_another_organization_is_kept_and_goes_nowhere(
    operator: ConsoleClient, tenant: Tenant, desk: RunningSandbox, ticket_path: str
) -> None:
    fields = await fill_in(operator, ticket_path)
    other = await tenant.api.make_organization()

    page = await operator.submit(ticket_path.replace(tenant.organization_id, other), fields)

    assert (page.status, page.trouble, page.value("message")) == (404, "ticket_not_found", "It is on.")
    assert await count_threads(desk) == 1


async def test_a_closed_ticket_says_that_a_reply_reopens_it(
    operator: ConsoleClient, desk: RunningSandbox, ticket_path: str
) -> None:
    assert "A reply reopens it." not in (await operator.get(ticket_path)).text
    (conversation,) = (await desk.look("desk"))["conversations"]
    await desk.control(f"/desk/conversations/{conversation['id']}/status", status="closed")

    assert "A reply reopens it." in (await operator.get(ticket_path)).text
    page = await operator.follow(await operator.submit(ticket_path, await fill_in(operator, ticket_path)))

    assert page.find(".//dd/span").get("class") == "status status-active"


async def test_another_member_replies_under_their_own_address(
    visitors: ConsoleClient, people: People, rival: Rival, desk: RunningSandbox, clock: FakeClock
) -> None:
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "mo", "billing")
    opened = await people.person("owner").post(TICKETS, params=tenant.query, json=ticket_body())
    path = f"/organizations/{tenant.organization_id}/tickets/{opened.json['id']}"
    mo = visitors.sign_in_as(people, "mo", clock.now())

    await mo.submit(path, await fill_in(mo, path))

    (conversation,) = (await desk.look("desk"))["conversations"]
    newest, oldest = (thread["createdBy"]["email"] for thread in conversation["_embedded"]["threads"])
    assert newest != oldest


async def test_the_form_in_french(operator: ConsoleClient, ticket_path: str, clock: FakeClock) -> None:
    french = operator.other(language="fr").sign_in_as_operator(clock.now())

    page = await french.get(ticket_path)

    assert "Répondre" in [each.text for each in page.find_all(".//h2")]
