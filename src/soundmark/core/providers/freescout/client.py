"""Calls of the support desk: finding, making and reading conversations, and adding threads to them.

The desk has no idempotency keys and makes a conversation or a thread at each post, so the caller searches before it
posts again. Error bodies may hold anything and are never read.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import msgspec

from soundmark.core.domain.support.ticket import (
    BRIEF_SETTLING,
    SETTLING,
    CustomerMessage,
    belongs_to_ticket,
)
from soundmark.core.providers.freescout.html_text import to_html
from soundmark.core.providers.freescout.server import DeskServer
from soundmark.core.providers.freescout.shapes import (
    DeskConversation,
    DeskDetail,
    DeskShapeInvalid,
    read_created_id,
    read_detail,
    read_found,
    require_folders,
)
from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, OutboundResponse, RequestLost
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json

_BYTES_MAX: Final = 4 * 1024 * 1024  # Some hundred of the longest messages, with every member of their threads.
_JSON_TYPE: Final = "application/json"
_STATUSES: Final = "active,pending,closed,spam"
_NOT_YET: Final = timedelta()
# A proxy gave up on a desk that may still work.
_GATEWAY_STATUSES: Final = frozenset({HTTPStatus.GATEWAY_TIMEOUT, 524})

T = TypeVar("T")


class DeskCallFailed(Exception):
    """The desk did not answer as documented; it may have acted all the same, and may still be at it.

    `reason` is one of our own words and `status` that of the response, if there was one. Both are safe to log. After
    `settles_in`, whatever the desk has done is found by a search.
    """

    def __init__(self, reason: str, status: int | None = None, *, settles_in: timedelta = _NOT_YET) -> None:
        super().__init__(reason)
        self.reason: Final = reason
        self.status: Final = status
        self.settles_in: Final = settles_in


class DeskClient:
    """A client of whichever desk the platform settings name at the moment of a call."""

    def __init__(self, *, extra_ca_file: Path | None) -> None:
        self._client: Final = OutboundClient(bytes_max=_BYTES_MAX, extra_ca_file=extra_ca_file)

    async def find_conversation(
        self, server: DeskServer, ticket_id: str, *, timeout_s: float
    ) -> DeskConversation | None:
        """Return the conversation that was made for a ticket, in whichever mailbox it is by now.

        Raises: DeskCallFailed.
        """
        query = urlencode({"subject": f"[{ticket_id}]", "status": _STATUSES, "sortOrder": "asc"})
        response = await self._send(server, "GET", f"/conversations?{query}", timeout_s=timeout_s)
        found = _read(read_found, _parse(_require(response, HTTPStatus.OK)))
        # The search takes an underscore for any character, and finds subjects that merely mention the ticket.
        matching = [each for each in found if belongs_to_ticket(each.subject, ticket_id)]
        return min(matching, key=lambda each: each.id, default=None)

    async def create_conversation(
        self, server: DeskServer, subject: str, message: CustomerMessage, *, timeout_s: float
    ) -> int:
        """Make a conversation and return its id.

        Raises: DeskCallFailed. The conversation may have been made all the same, so search before the next attempt.
        """
        customer = {"email": message.email}
        body = {
            "type": "email",
            "mailboxId": server.mailbox_id,
            "subject": subject,
            "customer": customer,
            "threads": [{"type": "customer", "text": to_html(message.text), "customer": customer}],
            "status": "active",
        }
        return await self._create(server, "/conversations", body, timeout_s=timeout_s)

    async def create_thread(
        self, server: DeskServer, conversation_id: int, message: CustomerMessage, *, timeout_s: float
    ) -> int:
        """Add a customer's message to a conversation, which reopens it, and return the id of the thread.

        Raises: DeskCallFailed. The thread may have been made all the same, so search before the next attempt.
        """
        body = {"type": "customer", "text": to_html(message.text), "customer": {"email": message.email}}
        return await self._create(server, f"/conversations/{conversation_id}/threads", body, timeout_s=timeout_s)

    async def get_conversation(self, server: DeskServer, conversation_id: int, *, timeout_s: float) -> DeskDetail:
        """Return a conversation with its messages.

        Raises: DeskCallFailed.
        """
        path = f"/conversations/{conversation_id}?embed=threads"
        response = await self._send(server, "GET", path, timeout_s=timeout_s)
        return _read(read_detail, _parse(_require(response, HTTPStatus.OK)))

    async def has_mailbox(self, server: DeskServer, *, timeout_s: float) -> bool:
        """Return whether the desk has the configured mailbox, by listing one of its folders.

        Raises: DeskCallFailed.
        """
        path = f"/mailboxes/{server.mailbox_id}/folders?pageSize=1"
        response = await self._send(server, "GET", path, timeout_s=timeout_s)
        found = _parse(response)  # A proxy, or a desk without the module for its API, answers a page.
        if response.status == HTTPStatus.NOT_FOUND:
            return False
        _require(response, HTTPStatus.OK)
        _read(require_folders, found)
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _create(self, server: DeskServer, path: str, body: Mapping[str, Any], *, timeout_s: float) -> int:
        response = await self._send(server, "POST", path, msgspec.json.encode(body), timeout_s=timeout_s)
        _require(response, HTTPStatus.CREATED)
        header = response.headers.get("resource-id")
        return _read(lambda value: read_created_id(value, header), None if header is not None else _parse(response))

    async def _send(
        self, server: DeskServer, method: str, path: str, content: bytes | None = None, *, timeout_s: float
    ) -> OutboundResponse:
        key = server.api_key.reveal()
        if timeout_s <= 0:
            raise DeskCallFailed("deadline")
        if not key.isascii():
            raise DeskCallFailed("unusable_key")
        headers = {"x-freescout-api-key": key} | ({} if content is None else {"content-type": _JSON_TYPE})
        try:
            return await self._client.send(
                OutboundRequest(method, server.url + path, headers, content), timeout_s=timeout_s
            )
        except RequestLost as lost:
            settles_in = SETTLING if lost.reason == "deadline" else BRIEF_SETTLING
            raise DeskCallFailed(lost.reason, settles_in=settles_in) from None


def _require(response: OutboundResponse, status: HTTPStatus) -> OutboundResponse:
    if response.status != status:
        settles_in = SETTLING if response.status in _GATEWAY_STATUSES else BRIEF_SETTLING
        # A refusal is the desk's last word.
        is_refusal = HTTPStatus.BAD_REQUEST <= response.status < HTTPStatus.INTERNAL_SERVER_ERROR
        raise DeskCallFailed("status", response.status, settles_in=_NOT_YET if is_refusal else settles_in)
    return response


def _parse(response: OutboundResponse) -> Any:
    if response.media_type != _JSON_TYPE:
        raise DeskCallFailed("not_json", response.status)
    try:
        return parse_json(response.body)
    except MalformedJson:
        raise DeskCallFailed("malformed", response.status) from None


def _read(read: Callable[[Any], T], value: Any) -> T:
    try:
        return read(value)
    except DeskShapeInvalid:
        raise DeskCallFailed("malformed") from None
