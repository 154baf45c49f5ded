"""Reading support tickets: verified at the desk, and only what the customer may see."""

import json
from typing import Any

import pytest
from structlog.testing import capture_logs
from support.api.core_client import Answer
from support.database.rival import Rival
from support.outside.desk import TICKETS, ticket_body
from support.outside.running_sandbox import RunningSandbox
from support.processes.fake_clock import FakeClock
from support.tenancy.tenant import Tenant

PAGE = "<script>x()</script><p>a &lt;b&gt; &#128263;\x07</p><p>c<br>d</p>"


@pytest.fixture
async def ticket(tenant: Tenant, desk: RunningSandbox) -> dict[str, Any]:
    """A ticket of the tenant."""
    assert await desk.look("desk") == {"conversations": []}
    opened = await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body())
    assert opened.status == 201
    ticket: dict[str, Any] = opened.json
    return ticket


async def conversation_id(desk: RunningSandbox) -> int:
    (conversation,) = (await desk.look("desk"))["conversations"]
    number: int = conversation["id"]
    return number


async def act(desk: RunningSandbox, act: str, **fields: Any) -> None:
    await desk.control(f"/desk/conversations/{await conversation_id(desk)}/{act}", **fields)


async def read(tenant: Tenant, ticket: dict[str, Any]) -> Answer:
    return await tenant.api.get(f"{TICKETS}/{ticket['id']}", params=tenant.query)


async def test_only_what_the_customer_may_see_is_shown(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any]
) -> None:
    await act(desk, "note", text="The customer is difficult")
    await act(desk, "reply", text="Try <again>\nand again", attachment=True, status="pending")
    await act(desk, "customer", text="Now it works")
    shown = await read(tenant, ticket)
    assert shown.status == 200
    assert {**shown.json, "messages": None} == {**ticket, "status": "pending", "messages": None}
    assert [(message["author"], message["body"]) for message in shown.json["messages"]] == [
        ("customer", "It is quiet.\nWhy?"),
        ("agent", "Try <again>\nand again"),
        ("customer", "Now it works"),
    ]
    for hidden in ("difficult", "screenshot", "desk.example", "operator@localhost", "conversation"):
        assert hidden not in shown.body.decode(), hidden


# A thread as the desk has it, and the messages that are shown of it.
@pytest.mark.parametrize(
    ("thread", "messages"),
    [
        ({"state": "draft"}, []),
        ({"state": "hidden"}, []),
        ({"type": "note"}, []),
        ({"type": "lineitem", "body": None}, []),
        ({"body": None}, [("agent", "")]),
        ({"body": PAGE}, [("agent", "a <b> 🔇\x07\n\nc\nd")]),
        ({"type": "customer", "body": "🔇" * 10_000}, [("customer", "🔇" * 10_000)]),
    ],
    ids=["draft", "hidden", "note", "lineitem", "empty", "html", "long"],
)
async def test_each_thread_is_judged_by_type_and_state(
    tenant: Tenant,
    desk: RunningSandbox,
    ticket: dict[str, Any],
    thread: dict[str, Any],
    messages: list[tuple[str, str]],
) -> None:
    planted = {"id": 1, "type": "message", "state": "published", "body": "Hello", "createdAt": "2026-11-20T10:00:00Z"}
    merge = {"_embedded": {"threads": [{**planted, **thread}]}}
    await desk.misbehave("desk", "altered", operation="read_conversation", merge=merge)
    shown = (await read(tenant, ticket)).json["messages"]
    assert [(message["author"], message["body"]) for message in shown] == messages


async def test_messages_of_one_second_are_in_the_order_of_their_ids(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any]
) -> None:
    at = "2026-11-20T10:00:00Z"
    threads = [
        {"id": number, "type": "message", "state": "published", "body": str(number), "createdAt": at}
        for number in (10, 9, 11)
    ]
    merge = {"_embedded": {"threads": threads}}
    await desk.misbehave("desk", "altered", operation="read_conversation", merge=merge)
    assert [message["body"] for message in (await read(tenant, ticket)).json["messages"]] == ["9", "10", "11"]


@pytest.mark.parametrize(
    "merge",
    [
        {"id": 4711},
        {"mailboxId": 2},
        {"subject": "No sound [tkt_AAAAAAAAAAAAAAAAAAAAAA]"},
        {"status": "on holiday"},
        {"updatedAt": "yesterday"},
        {"_embedded": {"threads": [{"id": 1}]}},
    ],
)
async def test_another_conversation_in_its_place_is_not_shown(
    tenant: Tenant, desk: RunningSandbox, rival: Rival, ticket: dict[str, Any], merge: dict[str, Any]
) -> None:
    before = await rival.rows("SELECT status, desk_updated_at FROM tickets")
    await desk.misbehave("desk", "altered", operation="read_conversation", merge=merge)
    refused = await read(tenant, ticket)
    assert (refused.status, refused.code) == (503, "support_unavailable")
    assert await rival.rows("SELECT status, desk_updated_at FROM tickets") == before


async def test_a_subject_that_the_desk_prolonged_still_names_the_ticket(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any]
) -> None:
    merge = {"subject": f"Re: No sound [{ticket['id']}] (billing)"}
    await desk.misbehave("desk", "altered", operation="read_conversation", merge=merge)
    assert (await read(tenant, ticket)).status == 200


@pytest.mark.parametrize("kind", ["down", "half_body", "server_error", "html", "wrong_object"])
async def test_a_desk_in_trouble_is_503_and_the_list_goes_on(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any], kind: str
) -> None:
    await desk.misbehave("desk", kind, times=0)
    with capture_logs() as logs:
        refused = await read(tenant, ticket)
    assert (refused.status, refused.code) == (503, "support_unavailable")
    assert "quiet" not in json.dumps(logs, default=str)
    listed = await tenant.api.get(TICKETS, params=tenant.query)
    assert listed.json == {"data": [{name: ticket[name] for name in ticket if name != "messages"}], "next_cursor": None}


@pytest.mark.parametrize(("at_desk", "status"), [("pending", "pending"), ("closed", "closed"), ("spam", "closed")])
async def test_a_detail_takes_the_status_from_the_desk(
    tenant: Tenant, desk: RunningSandbox, ticket: dict[str, Any], at_desk: str, status: str
) -> None:
    await act(desk, "status", status=at_desk)
    assert (await read(tenant, ticket)).json["status"] == status
    (listed,) = (await tenant.api.get(TICKETS, params=tenant.query)).json["data"]
    assert listed["status"] == status


async def test_an_older_status_than_the_last_that_was_taken_is_left(
    tenant: Tenant, rival: Rival, ticket: dict[str, Any], clock: FakeClock
) -> None:
    """As from a replica of the desk that lags behind its webhooks."""
    await rival.run("UPDATE tickets SET status = 'closed', desk_updated_at = %s", clock.now().replace(year=2036))
    assert (await read(tenant, ticket)).json["status"] == "closed"


@pytest.mark.usefixtures("desk")
async def test_tickets_are_listed_page_by_page(tenant: Tenant) -> None:
    made = [
        (await tenant.api.post(TICKETS, params=tenant.query, json=ticket_body(number))).json["id"]
        for number in range(3)
    ]
    page = (await tenant.api.get(TICKETS, params={**tenant.query, "limit": "2"})).json
    assert [each["id"] for each in page["data"]] == made[:0:-1]
    query = {**tenant.query, "limit": "2", "cursor": page["next_cursor"]}
    rest = (await tenant.api.get(TICKETS, params=query)).json
    assert ([each["id"] for each in rest["data"]], rest["next_cursor"]) == (made[:1], None)
    refused = await tenant.api.get(TICKETS, params={**tenant.query, "cursor": made[0]})
    assert (refused.status, refused.code) == (422, "invalid_cursor")
