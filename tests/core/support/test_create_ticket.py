"""Opening a support ticket: one conversation at the desk for one request, whatever is lost."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.people import People
from support.tenancy.platform_settings import put_setting
from support.tenancy.tenant import Tenant

from soundmark.core.domain.support.ticket import BRIEF_SETTLING, LEASE
from soundmark.core.providers.freescout.client import DeskCallFailed, DeskClient

MESSAGE = 'It is <b>quiet</b> &amp;\n\n  so "quiet" 🔇\x07'


async def open_ticket(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body(**changes))


async def conversations(desk: RunningSandbox) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await desk.look("desk"))["conversations"]
    return found


async def stored(rival: Rival) -> list[tuple[Any, ...]]:
    return await rival.rows(
        "SELECT status, conversation_id IS NOT NULL, mailbox_id, sealed_message IS NULL FROM tickets"
    )


async def test_a_ticket_is_one_conversation_at_the_desk(tenant: Tenant, desk: RunningSandbox, rival: Rival) -> None:
    opened = await open_ticket(tenant, subject="  No sound  ", message=MESSAGE)
    assert opened.status == 201
    ticket = opened.json
    assert (ticket["subject"], ticket["status"]) == ("No sound", "active")
    assert ticket["messages"] == [{"author": "customer", "body": MESSAGE, "created_at": ticket["created_at"]}]
    (conversation,) = await conversations(desk)
    assert conversation["subject"] == f"No sound [{ticket['id']}]"
    assert (conversation["mailboxId"], conversation["customer"]["email"]) == (1, "operator@localhost")
    (thread,) = conversation["_embedded"]["threads"]
    assert thread["type"] == "customer"
    assert "<b>" not in thread["body"]
    assert thread["body"].startswith("It is &lt;b&gt;quiet&lt;/b&gt; &amp;amp;<br><br>&nbsp;&nbsp;so")
    assert await stored(rival) == [("active", True, 1, True)]
    assert await rival.audited("support.ticket_created") == [("user operator", None, {"ticket_id": ticket["id"]})]


async def test_a_repeat_is_the_same_ticket_whatever_else_it_says(
    tenant: Tenant, desk: RunningSandbox, rival: Rival
) -> None:
    first = await open_ticket(tenant)
    repeated = await open_ticket(tenant, subject="Another", message="Something else")
    assert repeated.status == 200
    assert {**repeated.json, "messages": None} == {**first.json, "messages": None}
    assert [message["body"] for message in repeated.json["messages"]] == ["It is quiet.\nWhy?"]
    malformed = await open_ticket(tenant, message="")
    assert (malformed.status, malformed.code) == (422, "validation_failed")
    assert len(await conversations(desk)) == 1
    assert len(await rival.audited("support.ticket_created")) == 1


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"request_id": "supreq_" + "a" * 15}, "/request_id"),
        ({"request_id": "supreq_" + "a" * 65}, "/request_id"),
        ({"request_id": "supreq_" + "a" * 16 + "\n"}, "/request_id"),
        ({"subject": " "}, "/subject"),
        ({"subject": "s" * 201}, "/subject"),
        ({"subject": "a\r\nBcc: somebody@example.org"}, "/subject"),
        ({"message": "m" * 10_001}, "/message"),
    ],
)
async def test_a_malformed_ticket_is_refused(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, changes: dict[str, Any], pointer: str
) -> None:
    refused = await open_ticket(tenant, **changes)
    assert (refused.status, refused.code) == (422, "validation_failed")
    assert [error["pointer"] for error in refused.json["errors"]] == [pointer]
    assert await stored(rival) == await conversations(desk) == []


@pytest.mark.parametrize("message", ["🔇" * 10_000, "," * 10_000], ids=["emoji", "commas"])
async def test_the_longest_message_reaches_the_desk_and_comes_back(
    tenant: Tenant, desk: RunningSandbox, message: str
) -> None:
    opened = await open_ticket(tenant, subject="s" * 200, message=message)
    assert (opened.status, opened.json["messages"][0]["body"]) == (201, message)
    read = await tenant.api.get(f"{TICKETS}/{opened.json['id']}", params=tenant.query)
    assert read.json["messages"][0]["body"] == message
    assert len(await conversations(desk)) == 1


async def test_requests_of_other_people_and_organisations_are_their_own(
    people: People, rival: Rival, desk: RunningSandbox
) -> None:
    """Each is asked for under the verified address of the person who asks."""
    tenant = await people.tenant_of("owner")
    await tenant.make_member(rival, "bea", "billing")
    other = await people.tenant_of("owner")
    tickets = [
        await people.person(subject).post(TICKETS, params=query, json=ticket_body())
        for subject, query in (("owner", tenant.query), ("bea", tenant.query), ("owner", other.query))
    ]
    assert [ticket.status for ticket in tickets] == [201, 201, 201]
    assert len({ticket.json["id"] for ticket in tickets}) == 3
    addresses = [conversation["customer"]["email"] for conversation in await conversations(desk)]
    assert addresses[0] == addresses[2] != addresses[1]


# What the desk does in place of an answer, and whether it has the ticket all the same.
@pytest.mark.parametrize(
    ("kind", "has_worked"),
    [
        *(("lost_answer", True), ("half_body", True), ("down", False), ("server_error", False)),
        *(("rate_limited", False), ("html", False), ("wrong_object", False)),
    ],
)
async def test_a_ticket_that_was_cut_short_is_completed_by_the_repeat(
    *, tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock, kind: str, has_worked: bool
) -> None:
    await desk.misbehave("desk", kind, operation="create_conversation")
    failed = await open_ticket(tenant)
    assert (failed.status, failed.code) == (503, "support_unavailable")
    assert await stored(rival) == [("pending", False, None, False)]
    assert len(await conversations(desk)) == has_worked
    (listed,) = (await tenant.api.get(TICKETS, params=tenant.query)).json["data"]
    assert listed["status"] == "pending"
    unread = await tenant.api.get(f"{TICKETS}/{listed['id']}", params=tenant.query)
    assert (unread.status, unread.code) == (503, "support_unavailable")
    clock.advance(seconds=BRIEF_SETTLING.total_seconds())
    repeated = await open_ticket(tenant, message="Whatever")
    assert (repeated.status, repeated.json["id"], repeated.json["status"]) == (200, listed["id"], "active")
    assert repeated.json["messages"][0]["body"] == "It is quiet.\nWhy?"
    assert len(await conversations(desk)) == 1
    assert await stored(rival) == [("active", True, 1, True)]


async def test_a_desk_that_may_still_be_working_is_not_sent_the_ticket_again(
    tenant: Tenant, desk: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its work shows after it was given up, and the repeat finds it."""
    create, find, searched = DeskClient.create_conversation, DeskClient.find_conversation, asyncio.Event()
    given_up: list[tuple[Any, ...]] = []

    async def give_up(*args: Any, **_: Any) -> int:
        given_up.append(args)
        raise DeskCallFailed("deadline", settles_in=LEASE)

    async def search(*args: Any, timeout_s: float) -> Any:
        found = await find(*args, timeout_s=timeout_s)
        searched.set()
        return found

    monkeypatch.setattr(DeskClient, "create_conversation", give_up)
    monkeypatch.setattr(DeskClient, "find_conversation", search)
    assert (await open_ticket(tenant)).code == "support_unavailable"
    repeating = asyncio.create_task(open_ticket(tenant))
    await searched.wait()
    await create(*given_up[0], timeout_s=10)
    assert (await repeating).status == 200
    assert (len(await conversations(desk)), len(given_up)) == (1, 1)


async def test_a_clock_that_was_set_back_keeps_nobody_from_posting(
    tenant: Tenant, desk: RunningSandbox, clock: FakeClock
) -> None:
    await desk.misbehave("desk", "down", operation="create_conversation")
    assert (await open_ticket(tenant)).status == 503
    clock.advance(hours=-1)
    assert (await open_ticket(tenant)).status == 200
    assert len(await conversations(desk)) == 1


async def test_eight_repeats_at_once_are_one_conversation(tenant: Tenant, desk: RunningSandbox, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE tickets IN EXCLUSIVE MODE"):
        opening = [asyncio.create_task(open_ticket(tenant)) for _ in range(8)]
        await rival.until_someone_waits(8)
    answers = await asyncio.gather(*opening)
    assert sorted(answer.status for answer in answers) == [200] * 7 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert len(await conversations(desk)) == 1


async def test_two_attempts_at_once_take_turns(
    tenant: Tenant, desk: RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeat arrives while the first attempt posts."""
    create, posting, may_end = DeskClient.create_conversation, asyncio.Event(), asyncio.Event()
    posts: list[None] = []

    async def post(*args: Any, timeout_s: float) -> int:
        posts.append(None)
        posting.set()
        await may_end.wait()
        return await create(*args, timeout_s=timeout_s)

    async def search(*_: Any, **__: Any) -> None:
        may_end.set()

    monkeypatch.setattr(DeskClient, "create_conversation", post)
    monkeypatch.setattr(DeskClient, "find_conversation", search)
    first = asyncio.create_task(open_ticket(tenant))
    await posting.wait()
    second = await open_ticket(tenant)
    assert ((await first).status, second.status, len(posts)) == (201, 200, 1)
    assert len(await conversations(desk)) == 1


async def test_a_subject_that_mentions_another_ticket_is_not_taken_for_it(
    tenant: Tenant, desk: RunningSandbox, clock: FakeClock
) -> None:
    await desk.misbehave("desk", "down", operation="create_conversation")
    assert (await open_ticket(tenant)).status == 503
    (waiting,) = (await tenant.api.get(TICKETS, params=tenant.query)).json["data"]
    forged = await open_ticket(tenant, request_id="supreq_forged-by-a-member", subject=f"[{waiting['id']}]")
    assert forged.status == 201
    clock.advance(seconds=BRIEF_SETTLING.total_seconds())
    assert (await open_ticket(tenant)).status == 200
    subjects = {conversation["subject"] for conversation in await conversations(desk)}
    assert subjects == {f"No sound [{waiting['id']}]", f"[{waiting['id']}] [{forged.json['id']}]"}


@pytest.mark.parametrize("name", ["support_desk_base_url", "support_desk_mailbox_id"])
async def test_without_a_configured_desk_the_ticket_waits(
    tenant: Tenant, api: Api, desk: RunningSandbox, rival: Rival, name: str
) -> None:
    value = (await rival.rows("SELECT value FROM platform_configuration WHERE name = %s", name))[0][0]
    assert (await put_setting(api, name, None)).status == 200
    assert (await open_ticket(tenant)).code == "support_unavailable"
    assert await stored(rival) == [("pending", False, None, False)]
    await rival.run("INSERT INTO platform_configuration VALUES (%s, %s, now())", name, value)
    assert (await open_ticket(tenant)).status == 200
    assert len(await conversations(desk)) == 1


async def test_a_wrong_key_of_the_desk_is_named_in_the_log_only(
    tenant: Tenant, api: Api, desk: RunningSandbox, rival: Rival
) -> None:
    assert (await put_setting(api, "support_api_key", "another-key-of-the-desk")).status == 200
    with capture_logs() as logs:
        refused = await open_ticket(tenant)
    assert refused.code == "support_unavailable"
    (logged,) = [line for line in logs if line["event"] == "desk_call_failed"]
    assert (logged["reason"], logged["status"]) == ("status", 401)
    assert "quiet" not in f"{logs}{refused.body!r}"
    assert await conversations(desk) == []
    (sealed,) = (await rival.rows("SELECT sealed_message FROM tickets"))[0]
    assert b"quiet" not in sealed


async def test_a_conversation_that_was_spam_before_it_was_known_is_not_made_again(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, clock: FakeClock
) -> None:
    """The desk's people called it spam while the answer was lost."""
    await desk.misbehave("desk", "lost_answer", operation="create_conversation")
    assert (await open_ticket(tenant)).status == 503
    (conversation,) = await conversations(desk)
    await desk.control(f"/desk/conversations/{conversation['id']}/status", status="spam")
    clock.advance(minutes=1)
    repeated = await open_ticket(tenant)
    assert (repeated.status, repeated.json["status"]) == (200, "closed")
    assert len(await conversations(desk)) == 1
    assert await stored(rival) == [("closed", True, 1, True)]
