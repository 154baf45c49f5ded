"""Replying to a support ticket: one thread at the desk for one request, whatever is lost."""

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.outside.desk import TICKETS, reply_body, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.domain.support.ticket import BRIEF_SETTLING, LEASE
from soundmark.core.providers.freescout.client import DeskCallFailed, DeskClient

MESSAGE = '</p><script>alert(1)</script> <b>on</b> &amp;\n\n  so "quiet" 🔇\x07\n[rpl_AAAAAAAAAAAAAAAAAAAAAA]'


@pytest.fixture
async def ticket(tenant: Tenant, desk: RunningSandbox) -> dict[str, Any]:
    """A ticket of the tenant, which the desk has."""
    assert await desk.look("desk") == {"conversations": []}
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert opened.status == 201
    ticket: dict[str, Any] = opened.json
    return ticket


async def reply(tenant: Tenant, ticket: dict[str, Any], **changes: Any) -> Answer:
    path = f"{TICKETS}/{ticket['id']}/messages"
    return await tenant.api.post(path, params=tenant.query, json=reply_body(**changes))


async def conversation(desk: RunningSandbox) -> dict[str, Any]:
    (found,) = (await desk.look("desk"))["conversations"]
    whole: dict[str, Any] = found
    return whole


async def count_replies(desk: RunningSandbox) -> int:
    """Count the threads after the ticket's own message."""
    return len((await conversation(desk))["_embedded"]["threads"]) - 1


async def stored(rival: Rival) -> list[tuple[Any, ...]]:
    return await rival.rows("SELECT ticket_id, thread_id IS NOT NULL, sealed_message IS NULL FROM ticket_replies")


def bodies(answer: Answer) -> list[str]:
    return [message["body"] for message in answer.json["messages"]]


async def test_a_reply_is_one_thread_and_the_last_message(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any]
) -> None:
    replied = await reply(tenant, ticket, message=MESSAGE)
    assert replied.status == 201
    assert {**replied.json, "messages": None} == {**ticket, "messages": None}
    assert [(message["author"], message["body"]) for message in replied.json["messages"]] == [
        ("customer", "It is quiet.\nWhy?"),
        ("customer", MESSAGE),
    ]
    newest, _ = (await conversation(desk))["_embedded"]["threads"]
    assert (newest["type"], newest["createdBy"]["email"]) == ("customer", "operator@localhost")
    ((reply_id, thread_id),) = await rival.rows("SELECT id, thread_id FROM ticket_replies")
    assert newest["id"] == thread_id
    assert newest["body"].startswith("&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt; &lt;b&gt;on&lt;/b&gt; &amp;amp;")
    assert newest["body"].endswith(f"<br><br>[{reply_id}]")
    assert await stored(rival) == [(ticket["id"], True, True)]
    assert await rival.audited("support.ticket_replied") == [("user operator", None, {"ticket_id": ticket["id"]})]
    read = await tenant.api.get(f"{TICKETS}/{ticket['id']}", params=tenant.query)
    assert bodies(read) == bodies(replied), "the reference is for the desk alone"


async def test_a_repeat_is_the_same_reply_whatever_it_says(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any]
) -> None:
    first = await reply(tenant, ticket)
    repeated = await reply(tenant, ticket, message="Something else")
    assert (first.status, repeated.status) == (201, 200)
    assert repeated.json == first.json
    malformed = await reply(tenant, ticket, message="")
    assert (malformed.status, malformed.code) == (422, "validation_failed")
    assert await count_replies(desk) == 1
    assert len(await rival.audited("support.ticket_replied")) == 1


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"request_id": "supreq_" + "a" * 15}, "/request_id"),
        ({"message": "m" * 10_001}, "/message"),
        ({"subject": "Another"}, "/subject"),
    ],
)
async def test_a_malformed_reply_is_refused(
    *,
    tenant: Tenant,
    desk: RunningSandbox,
    rival: Rival,
    ticket: dict[str, Any],
    changes: dict[str, Any],
    pointer: str,
) -> None:
    refused = await reply(tenant, ticket, **changes)
    assert (refused.status, refused.code) == (422, "validation_failed")
    assert [error["pointer"] for error in refused.json["errors"]] == [pointer]
    assert (await stored(rival), await count_replies(desk)) == ([], 0)


async def test_the_longest_reply_reaches_the_desk_and_comes_back(tenant: Tenant, ticket: dict[str, Any]) -> None:
    assert bodies(await reply(tenant, ticket, message="🔇" * 10_000))[1] == "🔇" * 10_000


async def test_a_request_id_belongs_to_one_person_and_one_ticket(
    people: People, rival: Rival, desk: RunningSandbox
) -> None:
    """Each reply has the address of its own author, not of the person who opened the ticket."""
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "bea", "billing")
    owner, bea = people.person("owner"), people.person("bea")
    tickets = [(await owner.post(TICKETS, params=tenant.query, json=ticket_body(number))).json for number in (1, 2)]
    first, second = (f"{TICKETS}/{ticket['id']}/messages" for ticket in tickets)
    answers = [
        await person.post(path, params=tenant.query, json=reply_body())
        for person, path in ((owner, first), (bea, first), (owner, second), (bea, first))
    ]
    assert [answer.status for answer in answers] == [201, 201, 201, 200]
    assert [len(answer.json["messages"]) for answer in answers] == [2, 3, 2, 3]
    of_second, of_first = (await desk.look("desk"))["conversations"]
    authors = [thread["createdBy"]["email"] for thread in of_first["_embedded"]["threads"]]
    assert authors[0] != authors[1] == authors[2]
    assert len(of_second["_embedded"]["threads"]) == 2


async def test_a_ticket_of_another_organisation_is_not_found(
    people: People, rival: Rival, desk: RunningSandbox
) -> None:
    tenant, other = await people.tenant_of("owner"), await people.tenant_of("owner")
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    for ticket_id in (opened.json["id"], "tkt_AAAAAAAAAAAAAAAAAAAAAA"):
        refused = await other.api.post(f"{TICKETS}/{ticket_id}/messages", params=other.query, json=reply_body())
        assert (refused.status, refused.code) == (404, "ticket_not_found")
    assert (await stored(rival), await count_replies(desk)) == ([], 0)


@pytest.mark.parametrize("status", ["closed", "spam", "pending"])
async def test_a_reply_reopens_the_ticket(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any], status: str
) -> None:
    number = (await conversation(desk))["id"]
    await desk.control(f"/desk/conversations/{number}/status", status=status)
    read = await tenant.api.get(f"{TICKETS}/{ticket['id']}", params=tenant.query)
    assert read.json["status"] == ("pending" if status == "pending" else "closed")
    replied = await reply(tenant, ticket)
    assert (replied.status, replied.json["status"]) == (201, "active")
    (listed,) = (await tenant.api.get(TICKETS, params=tenant.query)).json["data"]
    assert listed["status"] == "active"


# What the desk does in place of answering the post, and whether it has the reply all the same.
@pytest.mark.parametrize(
    ("kind", "has_worked"),
    [
        *(("lost_answer", True), ("half_body", True), ("false_error", True), ("down", False), ("server_error", False)),
        *(("rate_limited", False), ("html", False), ("wrong_object", False)),
    ],
)
async def test_a_reply_that_was_cut_short_is_completed_by_the_repeat(
    *,
    tenant: Tenant,
    desk: RunningSandbox,
    rival: Rival,
    clock: FakeClock,
    ticket: dict[str, Any],
    kind: str,
    has_worked: bool,
) -> None:
    await desk.misbehave("desk", kind, operation="create_thread")
    failed = await reply(tenant, ticket)
    assert (failed.status, failed.code) == (503, "support_unavailable")
    assert await stored(rival) == [(ticket["id"], False, False)]
    assert await count_replies(desk) == has_worked
    clock.advance(seconds=BRIEF_SETTLING.total_seconds())
    repeated = await reply(tenant, ticket, message="Whatever")
    assert (repeated.status, bodies(repeated)[1:]) == (200, ["It is on.\nStill quiet."])
    assert await count_replies(desk) == 1
    assert await stored(rival) == [(ticket["id"], True, True)]


@pytest.mark.parametrize("kind", ["down", "half_body", "server_error", "html", "wrong_object"])
async def test_nothing_is_posted_to_a_conversation_that_cannot_be_read(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any], kind: str
) -> None:
    await desk.misbehave("desk", kind, operation="read_conversation")
    with capture_logs() as logs:
        failed = await reply(tenant, ticket)
    assert (failed.status, failed.code) == (503, "support_unavailable")
    assert await count_replies(desk) == 0
    (sealed,) = (await rival.rows("SELECT sealed_message FROM ticket_replies"))[0]
    assert b"quiet" not in sealed
    assert "quiet" not in f"{json.dumps(logs, default=str)}{failed.body!r}"
    assert (await reply(tenant, ticket)).status == 200
    assert await count_replies(desk) == 1


@pytest.mark.parametrize("merge", [{"id": 4711}, {"mailboxId": 2}, {"subject": "[tkt_AAAAAAAAAAAAAAAAAAAAAA]"}])
async def test_nothing_is_posted_to_another_conversation(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any], merge: dict[str, Any]
) -> None:
    await desk.misbehave("desk", "altered", operation="read_conversation", merge=merge, times=0)
    refused = await reply(tenant, ticket)
    assert (refused.status, refused.code) == (503, "support_unavailable")
    assert (await stored(rival), await count_replies(desk)) == ([(ticket["id"], False, False)], 0)


async def test_a_reply_whose_ticket_cannot_be_read_afterwards_is_there_once(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any]
) -> None:
    await desk.misbehave("desk", "altered", operation="read_conversation")  # It alters nothing: this call passes.
    await desk.misbehave("desk", "server_error", operation="read_conversation")
    assert (await reply(tenant, ticket)).code == "support_unavailable"
    assert await stored(rival) == [(ticket["id"], True, True)]
    repeated = await reply(tenant, ticket)
    assert (repeated.status, len(bodies(repeated))) == (200, 2)
    assert await count_replies(desk) == 1


async def test_a_reply_waits_for_a_ticket_that_the_desk_does_not_have(
    tenant: Tenant, desk: RunningSandbox, rival: Rival
) -> None:
    await desk.misbehave("desk", "down", operation="create_conversation")
    assert (await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())).status == 503
    (waiting,) = (await tenant.api.get(TICKETS, params=tenant.query)).json["data"]
    refused = await reply(tenant, waiting)
    assert (refused.status, refused.code) == (503, "support_unavailable")
    assert await stored(rival) == [(waiting["id"], False, False)]
    await rival.run("UPDATE tickets SET post_after = created_at")
    assert (await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())).status == 200
    repeated = await reply(tenant, waiting)
    assert (repeated.status, bodies(repeated)) == (200, ["It is quiet.\nWhy?", "It is on.\nStill quiet."])


async def test_without_a_configured_desk_the_reply_waits(
    tenant: Tenant, api: Api, rival: Rival, ticket: dict[str, Any]
) -> None:
    name = "support_desk_base_url"
    value = (await rival.rows("SELECT value FROM platform_configuration WHERE name = %s", name))[0][0]
    assert (await put_setting(api, name, None)).status == 200
    assert (await reply(tenant, ticket)).code == "support_unavailable"
    await rival.run("INSERT INTO platform_configuration VALUES (%s, %s, now())", name, value)
    assert (await reply(tenant, ticket)).status == 200


async def test_a_desk_that_may_still_be_working_is_not_sent_the_reply_again(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its work shows after it was given up, and the repeat finds it."""
    create, read, searched = DeskClient.create_thread, DeskClient.get_conversation, asyncio.Event()
    given_up: list[tuple[Any, ...]] = []

    async def give_up(*args: Any, **_: Any) -> int:
        given_up.append(args)
        raise DeskCallFailed("deadline", settles_in=LEASE)

    async def search(*args: Any, timeout_s: float) -> Any:
        found = await read(*args, timeout_s=timeout_s)
        searched.set()
        return found

    monkeypatch.setattr(DeskClient, "create_thread", give_up)
    assert (await reply(tenant, ticket)).code == "support_unavailable"
    monkeypatch.setattr(DeskClient, "get_conversation", search)
    repeating = asyncio.create_task(reply(tenant, ticket))
    await searched.wait()
    await create(*given_up[0], timeout_s=10)
    assert (await repeating).status == 200
    assert (await count_replies(desk), len(given_up)) == (1, 1)


async def test_a_slow_desk_gets_ten_seconds_in_all_and_one_thread(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call takes four seconds, so there are two left to read the ticket afterwards."""
    create, read = DeskClient.create_thread, DeskClient.get_conversation
    timeouts_s: list[float] = []

    async def post_slowly(*args: Any, timeout_s: float) -> int:
        timeouts_s.append(timeout_s)
        clock.advance(seconds=4)
        return await create(*args, timeout_s=timeout_s)

    async def read_slowly(*args: Any, timeout_s: float) -> Any:
        timeouts_s.append(timeout_s)
        clock.advance(seconds=4)
        if timeout_s < 4:
            raise DeskCallFailed("deadline")
        return await read(*args, timeout_s=timeout_s)

    monkeypatch.setattr(DeskClient, "create_thread", post_slowly)
    monkeypatch.setattr(DeskClient, "get_conversation", read_slowly)
    assert (await reply(tenant, ticket)).code == "support_unavailable"
    first_s, second_s, third_s = timeouts_s
    assert 10 >= first_s >= second_s + 4 >= third_s + 8
    assert (await reply(tenant, ticket)).status == 200
    assert await count_replies(desk) == 1


async def test_eight_repeats_at_once_are_one_thread(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any]
) -> None:
    async with rival.holding("LOCK TABLE ticket_replies IN EXCLUSIVE MODE"):
        replying = [asyncio.create_task(reply(tenant, ticket)) for _ in range(8)]
        await rival.until_someone_waits(8)
    answers = await asyncio.gather(*replying)
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert {len(bodies(answer)) for answer in answers} == {2}
    assert await count_replies(desk) == 1
    assert len(await rival.audited("support.ticket_replied")) == 1


async def test_two_attempts_at_once_take_turns(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeat arrives, and searches, while the first attempt posts."""
    create, read = DeskClient.create_thread, DeskClient.get_conversation
    posting, may_end = asyncio.Event(), asyncio.Event()
    posts: list[None] = []

    async def post(*args: Any, timeout_s: float) -> int:
        posts.append(None)
        posting.set()
        await may_end.wait()
        return await create(*args, timeout_s=timeout_s)

    async def search(*args: Any, timeout_s: float) -> Any:
        found = await read(*args, timeout_s=timeout_s)
        if posting.is_set():
            may_end.set()
        return found

    monkeypatch.setattr(DeskClient, "create_thread", post)
    monkeypatch.setattr(DeskClient, "get_conversation", search)
    first = asyncio.create_task(reply(tenant, ticket))
    await posting.wait()
    second = await reply(tenant, ticket)
    assert ((await first).status, second.status, len(posts)) == (201, 200, 1)
    assert await count_replies(desk) == 1


async def test_different_replies_at_once_are_all_there(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any]
) -> None:
    ids = [reply_body(number)["request_id"] for number in range(4)]
    answers = await asyncio.gather(*(reply(tenant, ticket, request_id=each, message=each) for each in ids))
    assert [answer.status for answer in answers] == [201] * 4
    read = await tenant.api.get(f"{TICKETS}/{ticket['id']}", params=tenant.query)
    assert set(bodies(read)[1:]) == set(ids)
    assert await count_replies(desk) == 4


async def test_an_organisation_that_is_deleted_meanwhile_gets_no_row(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The desk is reading when everything of the organisation goes."""
    read = DeskClient.get_conversation

    async def read_and_delete(*args: Any, timeout_s: float) -> Any:
        found = await read(*args, timeout_s=timeout_s)
        await rival.run("DELETE FROM tickets")
        return found

    monkeypatch.setattr(DeskClient, "get_conversation", read_and_delete)
    refused = await reply(tenant, ticket)
    assert (refused.status, refused.code) == (404, "organization_not_found")
    assert await stored(rival) == []
    assert await count_replies(desk) == 1, "the post was under way"


async def test_a_reference_that_somebody_else_writes_completes_nothing(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, ticket: dict[str, Any]
) -> None:
    """An agent quotes the reference of a reply; only a customer's thread is one."""
    await desk.misbehave("desk", "down", operation="create_thread")
    assert (await reply(tenant, ticket)).status == 503
    ((reply_id,),) = await rival.rows("SELECT id FROM ticket_replies")
    number = (await conversation(desk))["id"]
    await desk.control(f"/desk/conversations/{number}/reply", text=f"You wrote [{reply_id}]")
    clock.advance(seconds=BRIEF_SETTLING.total_seconds())
    repeated = await reply(tenant, ticket)
    assert bodies(repeated)[1:] == [f"You wrote [{reply_id}]", "It is on.\nStill quiet."]


async def test_a_second_thread_of_one_reply_is_logged(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A desk that carried out a post long after it was given up."""
    create = DeskClient.create_thread

    async def post_twice(*args: Any, timeout_s: float) -> int:
        await create(*args, timeout_s=timeout_s)
        nested = await reply(tenant, ticket)
        assert nested.status == 200
        return await create(*args, timeout_s=timeout_s)

    monkeypatch.setattr(DeskClient, "create_thread", post_twice)
    with capture_logs() as logs:
        assert (await reply(tenant, ticket)).status == 201
    assert [line["ticket_id"] for line in logs if line["event"] == "reply_twice_at_desk"] == [ticket["id"]]
    assert await count_replies(desk) == 2
