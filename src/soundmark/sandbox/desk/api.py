"""The support desk's API, as its module for the API and webhooks offers it."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from soundmark.sandbox.desk.conversations import (
    AGENT,
    STATUSES,
    Conversation,
    Conversations,
    Thread,
    render_conversation,
    render_thread,
)
from soundmark.sandbox.operation import Api, Handler, Shared
from soundmark.sandbox.options import PREFIXES

_PAGE_SIZE: Final = 50
_KINDS: Final = ("email", "phone", "chat")
_FOLDERS: Final = (("Unassigned", 1), ("Drafts", 30), ("Assigned", 40), ("Closed", 60), ("Spam", 80), ("Deleted", 110))


class _RequestInvalid(Exception):
    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path: Final = path
        self.message: Final = message


class _NotFound(Exception):
    """There is no such conversation or mailbox."""


class DeskApi:
    """The operations of the API."""

    def __init__(self, desk: Conversations, api_key: str, mailbox_id: int, shared: Shared) -> None:
        self._desk: Final = desk
        self._api_key: Final = api_key
        self._mailbox_id: Final = mailbox_id
        self._api: Final = Api("desk", PREFIXES["desk"], shared, self._pass, make_error)

    def routes(self) -> list[Route]:
        """Return the routes, each with the name by which switches know it."""
        route = self._api.route
        return [
            route("POST", "/api/conversations", "create_conversation", self._create),
            route("GET", "/api/conversations", "find_conversations", self._find),
            route("GET", "/api/conversations/{id:int}", "read_conversation", self._read),
            route("PUT", "/api/conversations/{id:int}", "update_conversation", self._update),
            route("POST", "/api/conversations/{id:int}/threads", "create_thread", self._create_thread),
            route("GET", "/api/mailboxes/{id:int}/folders", "list_folders", self._list_folders),
        ]

    async def _pass(self, request: Request, handler: Handler) -> Response:
        if request.headers.get("x-freescout-api-key") != self._api_key:
            return make_error(401)
        try:
            return await handler(request)
        except _RequestInvalid as invalid:
            error = {"path": invalid.path, "message": invalid.message, "source": "JSON"}
            return JSONResponse({"message": "Error occurred", "_embedded": {"errors": [error]}}, 400)
        except _NotFound:
            return make_error(404)

    async def _create(self, request: Request) -> Response:
        fields = await _read_json(request)
        kind, subject = fields.get("type"), fields.get("subject")
        if kind not in _KINDS:
            raise _RequestInvalid("type", "Invalid or missing parameter")
        if fields.get("mailboxId") != self._mailbox_id:
            raise _RequestInvalid("mailboxId", "Mailbox not found")
        if not isinstance(subject, str) or not subject:
            raise _RequestInvalid("subject", "Invalid or missing parameter")
        threads = fields.get("threads")
        if not isinstance(threads, list) or not threads:
            raise _RequestInvalid("threads", "Invalid or missing parameter")
        customer = self._read_customer(fields.get("customer"))
        status = _read_status(fields.get("status", "active"))
        conversation = self._desk.open(self._mailbox_id, subject, customer, status, kind)
        for thread in reversed(threads):  # The newest comes first.
            self._add_thread(conversation, thread, "threads.")
        self._desk.announce("convo.created", conversation)
        return _created(conversation.id, render_conversation(conversation))

    async def _create_thread(self, request: Request) -> Response:
        conversation = self._get(request)
        fields = await _read_json(request)
        status = _read_status(fields["status"]) if "status" in fields else None
        thread = self._add_thread(conversation, fields)
        self._desk.take_thread(conversation, thread, status)
        events = {"customer": "convo.customer.reply.created", "message": "convo.agent.reply.created"}
        self._desk.announce(events.get(thread.type, "convo.note.created"), conversation)
        return _created(thread.id, render_thread(conversation, thread))

    async def _read(self, request: Request) -> Response:
        document = render_conversation(self._get(request))
        if "threads" not in request.query_params.get("embed", "").split(","):
            del document["_embedded"]
        return JSONResponse(document)

    async def _update(self, request: Request) -> Response:
        conversation = self._get(request)
        fields = await _read_json(request)
        if not isinstance(fields.get("byUser"), int):
            raise _RequestInvalid("byUser", "Invalid or missing parameter")
        if "status" in fields:
            self._desk.set_status(conversation, _read_status(fields["status"]))
        return Response(status_code=204)

    async def _find(self, request: Request) -> Response:
        query = request.query_params
        found = [each for each in self._desk.all.newest_first() if _matches(each, query)]
        size = _read_number(query.get("pageSize"), _PAGE_SIZE)
        number = _read_number(query.get("page"), 1)
        documents = [render_conversation(each) for each in found[(number - 1) * size : number * size]]
        if "threads" not in query.get("embed", "").split(","):
            for document in documents:
                del document["_embedded"]
        page = {
            "size": size,
            "totalElements": len(found),
            "totalPages": ceil(len(found) / size),
            "number": number,
        }
        return JSONResponse({"_embedded": {"conversations": documents}, "page": page})

    async def _list_folders(self, request: Request) -> Response:
        if request.path_params["id"] != self._mailbox_id:
            raise _NotFound
        folders = [_render_folder(number, *each) for number, each in enumerate(_FOLDERS, 1)]
        size = _read_number(request.query_params.get("pageSize"), _PAGE_SIZE)
        page = {"size": size, "totalElements": len(folders), "totalPages": ceil(len(folders) / size), "number": 1}
        return JSONResponse({"_embedded": {"folders": folders[:size]}, "page": page})

    def _get(self, request: Request) -> Conversation:
        conversation = self._desk.all.find(str(request.path_params["id"]))
        if conversation is None:
            raise _NotFound
        return conversation

    def _read_customer(self, fields: Any) -> dict[str, Any]:
        if not isinstance(fields, dict) or not isinstance(fields.get("email"), str):
            raise _RequestInvalid("customer", "Invalid or missing parameter")
        return self._desk.find_customer(fields["email"], fields.get("firstName", ""), fields.get("lastName", ""))

    def _add_thread(self, conversation: Conversation, fields: Any, path: str = "") -> Thread:
        """Add a thread; `path` is that of its members, as errors name them."""
        kind = fields.get("type") if isinstance(fields, dict) else None
        if kind not in {"customer", "message", "note"}:
            raise _RequestInvalid(f"{path}type", "Invalid or missing parameter")
        if not isinstance(fields.get("text"), str) or not fields["text"]:
            raise _RequestInvalid(f"{path}text", "Invalid or missing parameter")
        if kind == "customer":
            author = self._read_customer(fields["customer"]) if "customer" in fields else dict(conversation.customer)
        elif isinstance(fields.get("user"), int):
            author = AGENT
        else:
            raise _RequestInvalid(f"{path}user", "Invalid or missing parameter")
        # The text is kept as HTML, as the real desk does.
        return self._desk.add_thread(conversation, kind, fields["text"], author)


def make_error(status: int) -> Response:
    """Return an error in the desk's shape."""
    if status == 401:  # noqa: PLR2004 - HTTP's own number
        return JSONResponse({"message": "Not Authorized"}, status)
    messages = {404: "Not Found", 429: "Too Many Attempts.", 500: "Server Error"}
    return JSONResponse({"message": messages.get(status, "Error occurred"), "_embedded": {"errors": []}}, status)


def _created(resource_id: int, document: Mapping[str, Any]) -> Response:
    return JSONResponse(dict(document), 201, {"resource-id": str(resource_id)})


async def _read_json(request: Request) -> dict[str, Any]:
    try:
        fields = json.loads(await request.body())
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise _RequestInvalid("", "Invalid JSON")
    return fields


def _render_folder(folder_id: int, name: str, kind: int) -> dict[str, Any]:
    """Return a folder that belongs to no user."""
    return {
        "id": folder_id,
        "name": name,
        "type": kind,
        "userId": None,
        "totalCount": 0,
        "activeCount": 0,
        "meta": None,
    }


def _read_status(status: Any) -> str:
    if status not in STATUSES[:3]:
        raise _RequestInvalid("status", "Invalid or missing parameter")
    return str(status)


def _matches(conversation: Conversation, query: Mapping[str, str]) -> bool:
    statuses = query.get("status", "active,pending,closed").split(",")
    since = query.get("createdSince")
    return all(
        (
            conversation.status in statuses,
            query.get("mailboxId", str(conversation.mailbox_id)) == str(conversation.mailbox_id),
            query.get("customerEmail", conversation.customer["email"]).lower()
            == conversation.customer["email"].lower(),
            _is_like(conversation.subject, query.get("subject", "")),
            since is None or conversation.created_at >= _read_moment(since),
            query.get("state", "published") == "published",
        )
    )


def _is_like(text: str, wanted: str) -> bool:
    """Return whether SQL's `LIKE %wanted%` finds it, in which `_` stands for any character and case is ignored."""
    pattern = re.escape(wanted).replace("%", ".*").replace("_", ".")
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL) is not None


def _read_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise _RequestInvalid("createdSince", "Invalid or missing parameter") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _read_number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() and int(text[:4]) > 0 else default
