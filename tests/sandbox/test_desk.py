"""The desk's stand-in, against what FreeScout's module for the API and webhooks does."""

import base64
import hmac
import json
from typing import Any

import httpx2
import pytest
from support.outside.running_sandbox import RunningSandbox
from support.webhooks.received_webhooks import ReceivedRequest, ReceivedWebhooks


def headers(sandbox: RunningSandbox) -> dict[str, str]:
    return {"X-FreeScout-API-Key": sandbox.secret("SUPPORT_API_KEY")}


async def create(sandbox: RunningSandbox, **changes: Any) -> httpx2.Response:
    body = {
        "type": "email",
        "mailboxId": 1,
        "subject": "No sound [tkt_1]",
        "customer": {"email": "asker@example.org", "firstName": "Ada"},
        "threads": [{"type": "customer", "text": "It is<br>quiet", "customer": {"email": "asker@example.org"}}],
        **changes,
    }
    return await sandbox.client.post("/desk/api/conversations", json=body, headers=headers(sandbox))


async def read(sandbox: RunningSandbox, number: int = 1) -> dict[str, Any]:
    url = f"/desk/api/conversations/{number}"
    response = await sandbox.client.get(url, params={"embed": "threads"}, headers=headers(sandbox))
    assert response.status_code == 200
    document: dict[str, Any] = response.json()
    return document


async def find(sandbox: RunningSandbox, **params: str) -> list[int]:
    response = await sandbox.client.get("/desk/api/conversations", params=params, headers=headers(sandbox))
    answer = response.json()
    assert answer["page"]["totalElements"] >= len(answer["_embedded"]["conversations"])
    return [each["id"] for each in answer["_embedded"]["conversations"]]


def expected_signature(sandbox: RunningSandbox, request: ReceivedRequest, name: str) -> str:
    secret = sandbox.secret("SUPPORT_WEBHOOK_SECRET").encode()
    return base64.b64encode(hmac.digest(secret, request.body, name)).decode()


async def test_the_folders_of_the_mailbox_are_listed_in_pages(sandbox: RunningSandbox) -> None:
    url = "/desk/api/mailboxes/1/folders"
    listed = await sandbox.client.get(url, params={"pageSize": "1"}, headers=headers(sandbox))
    assert [each["name"] for each in listed.json()["_embedded"]["folders"]] == ["Unassigned"]
    assert listed.json()["page"] == {"size": 1, "totalElements": 6, "totalPages": 6, "number": 1}
    other = await sandbox.client.get(url.replace("1", "2"), headers=headers(sandbox))
    assert (other.status_code, other.json()["message"]) == (404, "Not Found")
    assert (await sandbox.client.get(url)).status_code == 401


async def test_a_new_conversation_is_201_with_its_id_in_a_header(sandbox: RunningSandbox) -> None:
    created = await create(sandbox)
    assert (created.status_code, created.headers["resource-id"]) == (201, "1")
    document = await read(sandbox)
    assert (document["subject"], document["status"], document["mailboxId"]) == ("No sound [tkt_1]", "active", 1)
    (thread,) = document["_embedded"]["threads"]
    assert (thread["type"], thread["state"], thread["body"]) == ("customer", "published", "It is<br>quiet")
    assert document["customer"]["email"] == "asker@example.org"
    bare = await sandbox.client.get("/desk/api/conversations/1", headers=headers(sandbox))
    assert "_embedded" not in bare.json()


# The members that FreeScout's documents and its module's source name.
CONVERSATION = {
    *("id", "number", "threadsCount", "type", "folderId", "status", "state", "subject", "preview", "mailboxId"),
    *("assignee", "createdBy", "createdAt", "updatedAt", "closedBy", "closedByUser", "closedAt", "userUpdatedAt"),
    *("customerWaitingSince", "source", "cc", "bcc", "customer", "customFields", "_embedded"),
}
THREAD = {
    *("id", "type", "status", "state", "action", "body", "source", "customer", "createdBy", "assignedTo", "to", "cc"),
    *("bcc", "createdAt", "openedAt", "_embedded"),
}


async def test_a_conversation_has_the_members_of_a_real_one(sandbox: RunningSandbox) -> None:
    await create(sandbox)
    await sandbox.control("/desk/conversations/1/reply", text="Is it on?", status="closed", attachment=True)
    document = await read(sandbox)
    assert document.keys() == CONVERSATION
    assert (document["closedBy"], document["closedByUser"]["type"]) == (1, "user")
    answer, question = document["_embedded"]["threads"]
    assert answer.keys() == question.keys() == THREAD
    assert answer["_embedded"]["attachments"][0].keys() >= {"id", "fileName", "fileUrl", "mimeType", "size"}
    assert question["createdBy"]["type"] == question["customer"]["type"] == "customer"


async def test_spam_is_a_status_that_only_the_desks_people_give(
    sandbox: RunningSandbox, core: ReceivedWebhooks
) -> None:
    await create(sandbox)
    act = {"status": "spam", "back": "/desk/conversations/1"}
    assert (await sandbox.client.post("/control/desk/conversations/1/status", data=act)).status_code == 303
    await sandbox.settle()
    assert json.loads(core.requests[-1].body)["status"] == "spam"
    assert await find(sandbox, subject="[tkt_1]", status="active,pending,closed,spam") == [1]


async def test_threads_are_listed_the_newest_first(sandbox: RunningSandbox) -> None:
    threads = [{"type": "customer", "text": text} for text in ("newest", "middle", "oldest")]
    await create(sandbox, threads=threads)
    bodies = [thread["body"] for thread in (await read(sandbox))["_embedded"]["threads"]]
    assert bodies == ["newest", "middle", "oldest"]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"type": "letter"}, "type"),
        ({"mailboxId": 2}, "mailboxId"),
        ({"subject": ""}, "subject"),
        ({"threads": []}, "threads"),
        ({"customer": {}}, "customer"),
        ({"status": "spam"}, "status"),
        ({"threads": [{"type": "message", "text": "x"}]}, "threads.user"),
    ],
)
async def test_a_wrong_conversation_is_refused(sandbox: RunningSandbox, changes: dict[str, Any], path: str) -> None:
    refused = await create(sandbox, **changes)
    assert refused.status_code == 400
    assert refused.json()["_embedded"]["errors"][0]["path"] == path


async def test_a_wrong_key_is_401_and_an_unknown_conversation_404(sandbox: RunningSandbox) -> None:
    refused = await sandbox.client.get("/desk/api/conversations")
    assert (refused.status_code, refused.json()) == (401, {"message": "Not Authorized"})
    missing = await sandbox.client.get("/desk/api/conversations/9", headers=headers(sandbox))
    assert (missing.status_code, missing.json()) == (404, {"message": "Not Found", "_embedded": {"errors": []}})


async def test_the_same_subject_makes_a_second_conversation(sandbox: RunningSandbox) -> None:
    await create(sandbox)
    await create(sandbox)
    assert await find(sandbox, subject="[tkt_1]") == [2, 1]


async def test_a_search_by_subject_is_sqls_like(sandbox: RunningSandbox) -> None:
    """`_` stands for any character, so the caller must compare again."""
    await create(sandbox, subject="One [tktx1]")
    assert await find(sandbox, subject="[tkt_1]") == [1]
    assert await find(sandbox, subject="[tkt-1]") == []
    assert await find(sandbox, subject="one", mailboxId="1", customerEmail="ASKER@example.org") == [1]
    assert await find(sandbox, mailboxId="2") == []
    assert await find(sandbox, status="closed") == []
    assert await find(sandbox, createdSince="2099-01-01T00:00:00Z") == []


async def test_an_agent_answers_on_the_page(sandbox: RunningSandbox) -> None:
    await create(sandbox, subject="<b>bold</b> [tkt_1]")
    page = (await sandbox.client.get("/desk/conversations/1")).text
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    answer = {"text": "Try <again>", "status": "pending", "attachment": "on", "back": "/desk/conversations/1"}
    done = await sandbox.client.post("/control/desk/conversations/1/reply", data=answer)
    assert (done.status_code, done.headers["location"]) == (303, "/desk/conversations/1")
    document = await read(sandbox)
    assert document["status"] == "pending"
    newest = document["_embedded"]["threads"][0]
    assert (newest["type"], newest["body"]) == ("message", "<div>Try &lt;again&gt;</div>")
    assert newest["createdBy"]["type"] == "user"
    assert newest["_embedded"]["attachments"][0]["fileName"] == "screenshot.png"


async def test_a_note_is_in_every_answer_and_webhook(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    """The real desk sends them too, so Core must leave them out."""
    await create(sandbox)
    await sandbox.control("/desk/conversations/1/note", text="between us")
    await sandbox.settle()
    assert (await read(sandbox))["_embedded"]["threads"][0]["type"] == "note"
    assert b"between us" in core.requests[-1].body


async def test_a_webhook_is_signed_as_the_contract_says(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await create(sandbox)
    await sandbox.control("/desk/conversations/1/status", status="closed")
    await sandbox.settle()
    created, closed = core.requests
    assert [created.headers["x-freescout-event"], closed.headers["x-freescout-event"]] == [
        "convo.created",
        "convo.status",
    ]
    assert created.path == "/v1/support/webhooks/desk"
    assert closed.headers["x-support-signature"] == expected_signature(sandbox, closed, "sha256")
    assert closed.headers["x-support-delivery"] != created.headers["x-support-delivery"]
    document = json.loads(closed.body)
    assert (document["id"], document["status"]) == (1, "closed")
    assert document["closedAt"]
    assert "external_id" not in document


async def test_a_stock_desk_signs_in_its_own_way(sandbox: RunningSandbox, core: ReceivedWebhooks) -> None:
    await sandbox.control("/desk/settings", signature="native", names_external_id=True)
    await create(sandbox, subject="é/ü [tkt_1]")
    await sandbox.settle()
    (request,) = core.requests
    assert request.headers["x-freescout-signature"] == expected_signature(sandbox, request, "sha1")
    assert not [name for name in request.headers if name.startswith("x-support")]
    assert b"\\u00e9\\/\\u00fc" in request.body, "as PHP writes it"
    assert json.loads(request.body)["external_id"] == "tkt_1"


async def test_a_customer_writes_again_and_the_status_changes_over_the_api(sandbox: RunningSandbox) -> None:
    await create(sandbox)
    body = {"type": "customer", "text": "Still quiet", "customer": {"email": "asker@example.org"}}
    added = await sandbox.client.post("/desk/api/conversations/1/threads", json=body, headers=headers(sandbox))
    assert (added.status_code, added.headers["resource-id"]) == (201, "2")
    await sandbox.control("/desk/conversations/1/customer", text="Now it works")
    url = "/desk/api/conversations/1"
    changed = await sandbox.client.put(url, json={"byUser": 1, "status": "closed"}, headers=headers(sandbox))
    assert changed.status_code == 204
    document = await read(sandbox)
    assert (document["status"], document["threadsCount"]) == ("closed", 3)
    refused = await sandbox.client.put(url, json={"status": "closed"}, headers=headers(sandbox))
    assert refused.status_code == 400


async def add_thread(sandbox: RunningSandbox, **fields: Any) -> httpx2.Response:
    body = {"type": "customer", "text": "Still<br>quiet", **fields}
    url = "/desk/api/conversations/1/threads"
    return await sandbox.client.post(url, json=body, headers=headers(sandbox))


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "active"),
        ({"status": "pending"}, "pending"),
        ({"type": "message", "user": 1}, "pending"),
        ({"type": "message", "user": 1, "status": "closed"}, "closed"),
        ({"type": "note", "user": 1}, "closed"),
    ],
)
async def test_a_thread_changes_the_status_and_only_the_threads_webhook_says_so(
    sandbox: RunningSandbox, core: ReceivedWebhooks, fields: dict[str, Any], status: str
) -> None:
    await create(sandbox)
    await sandbox.control("/desk/conversations/1/status", status="closed")
    added = await add_thread(sandbox, **fields)
    assert (added.status_code, added.headers["resource-id"]) == (201, "2")
    assert added.json().keys() == THREAD
    await sandbox.settle()
    *_, closed, followed = core.requests
    assert (closed.headers["x-freescout-event"], json.loads(closed.body)["status"]) == ("convo.status", "closed")
    assert followed.headers["x-freescout-event"].endswith((".reply.created", ".note.created"))
    assert json.loads(followed.body)["status"] == status == (await read(sandbox))["status"]


async def test_who_writes_last_is_the_customer_of_the_conversation(sandbox: RunningSandbox) -> None:
    """Agents answer that person."""
    await create(sandbox)
    await add_thread(sandbox, customer={"email": "other@example.org"})
    document = await read(sandbox)
    assert document["customer"]["email"] == "other@example.org"
    newest, oldest = (thread["createdBy"]["email"] for thread in document["_embedded"]["threads"])
    assert (newest, oldest) == ("other@example.org", "asker@example.org")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"type": "letter"}, "type"),
        ({"text": ""}, "text"),
        ({"customer": {}}, "customer"),
        ({"type": "message"}, "user"),
        ({"status": "spam"}, "status"),
    ],
)
async def test_a_wrong_thread_is_refused_and_changes_nothing(
    sandbox: RunningSandbox, fields: dict[str, Any], path: str
) -> None:
    await create(sandbox)
    before = await read(sandbox)
    refused = await add_thread(sandbox, **fields)
    assert (refused.status_code, refused.json()["_embedded"]["errors"][0]["path"]) == (400, path)
    assert await read(sandbox) == before


async def test_a_thread_needs_a_conversation(sandbox: RunningSandbox) -> None:
    assert (await add_thread(sandbox)).status_code == 404


async def test_the_same_thread_twice_is_two_threads_and_a_lost_answer_did_its_work(sandbox: RunningSandbox) -> None:
    await create(sandbox)
    await sandbox.misbehave("desk", "lost_answer", operation="create_thread")
    with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
        await add_thread(sandbox)
    assert (await add_thread(sandbox)).status_code == 201
    assert (await read(sandbox))["threadsCount"] == 3
