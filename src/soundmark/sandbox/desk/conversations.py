"""The state of the support desk: conversations, their threads, and the webhooks about them."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from soundmark.kit.clock import Clock
from soundmark.kit.crypto.entropy import Entropy
from soundmark.sandbox.deliveries import Deliveries, Delivery, Notice
from soundmark.sandbox.minting import mint_id
from soundmark.sandbox.shelf import Shelf

STATUSES: Final = ("active", "pending", "closed", "spam")
AGENT: Final = {
    "id": 1,
    "type": "user",
    "firstName": "Amel",
    "lastName": "Agent",
    "email": "agent@desk.example",
}
_TICKET: Final = re.compile(r"\[(tkt_[A-Za-z0-9_-]+)\]")


@dataclass(frozen=True, slots=True)
class Thread:
    """A message, a note or a change; `body` is HTML."""

    id: int
    type: str
    body: str
    created_at: datetime
    author: Mapping[str, Any]
    state: str = "published"
    attachments: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class Conversation:
    """A conversation of a mailbox with one customer."""

    id: int
    mailbox_id: int
    subject: str
    customer: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    status: str = "active"
    type: str = "email"
    closed_at: datetime | None = None
    threads: list[Thread] = field(default_factory=list)


@dataclass(slots=True)
class DeskChoices:
    """What a person or a test may choose.

    `signature` is `contract` (HMAC-SHA-256 with a delivery id) or `native` (as a stock desk signs). With
    `names_external_id` the body names the ticket of the subject in `external_id`.
    """

    webhook_url: str
    signature: Literal["contract", "native"] = "contract"
    names_external_id: bool = False


class Conversations:
    """Everything that the support desk remembers."""

    def __init__(
        self, clock: Clock, entropy: Entropy, deliveries: Deliveries, choices: DeskChoices, webhook_secret: str
    ) -> None:
        self._clock: Final = clock
        self._entropy: Final = entropy
        self._deliveries: Final = deliveries
        self._webhook_secret: Final = webhook_secret.encode()
        self.choices: Final = choices
        self.all: Final[Shelf[Conversation]] = Shelf()
        self._conversations_count = 0
        self._threads_count = 0
        self._customers: Final[dict[str, int]] = {}

    def open(self, mailbox_id: int, subject: str, customer: Mapping[str, Any], status: str, kind: str) -> Conversation:
        """Add a conversation without a thread."""
        self._conversations_count += 1
        now = self._clock.now()
        conversation = Conversation(
            self._conversations_count, mailbox_id, subject, customer, now, now, status=status, type=kind
        )
        return self.all.add(str(conversation.id), conversation)

    def find_customer(self, email: str, first_name: str = "", last_name: str = "") -> dict[str, Any]:
        """Return the customer with that address, who is made if new."""
        number = self._customers.setdefault(email.lower(), len(self._customers) + 1)
        return {"id": number, "type": "customer", "firstName": first_name, "lastName": last_name, "email": email}

    def add_thread(
        self,
        conversation: Conversation,
        kind: str,
        body: str,
        author: Mapping[str, Any],
        *,
        state: str = "published",
        attachments: tuple[Mapping[str, Any], ...] = (),
    ) -> Thread:
        """Add a thread; `body` is HTML."""
        self._threads_count += 1
        now = self._clock.now()
        thread = Thread(self._threads_count, kind, body, now, author, state, attachments)
        conversation.threads.append(thread)
        conversation.updated_at = now
        return thread

    def take_thread(self, conversation: Conversation, thread: Thread, status: str | None) -> None:
        """Change a conversation as a thread of the API does: no webhook says that its status changed.

        A customer's thread reopens the conversation, and agents answer its author from then on. An agent's thread makes
        it pending. Either may name another status.
        """
        conversation.status = status or {"customer": "active", "message": "pending"}.get(
            thread.type, conversation.status
        )
        conversation.closed_at = thread.created_at if conversation.status == "closed" else None
        if thread.type == "customer":
            conversation.customer = thread.author

    def set_status(self, conversation: Conversation, status: str) -> None:
        """Change the status, which is announced as well."""
        now = self._clock.now()
        conversation.status = status
        conversation.updated_at = now
        conversation.closed_at = now if status == "closed" else None
        self.announce("convo.status", conversation)

    def announce(self, event: str, conversation: Conversation) -> Delivery:
        """Send a webhook with the whole conversation, notes and addresses included."""
        document = render_conversation(conversation)
        if self.choices.names_external_id and (match := _TICKET.search(conversation.subject)):
            document["external_id"] = match[1]
        # As PHP writes JSON: slashes and everything beyond ASCII are escaped.
        body = json.dumps(document, separators=(",", ":")).replace("/", "\\/").encode()
        headers = self._sign(event, body)
        return self._deliveries.send(Notice("desk", event, "POST", self.choices.webhook_url, body, lambda: headers))

    def clear(self) -> None:
        """Forget every conversation."""
        self.all.clear()
        self._customers.clear()

    def _sign(self, event: str, body: bytes) -> dict[str, str]:
        """Return the headers of every attempt, so that a repeat has the same delivery id."""
        headers = {"content-type": "application/json", "x-freescout-event": event}
        if self.choices.signature == "native":
            digest = hmac.digest(self._webhook_secret, body, hashlib.sha1)
            return {**headers, "x-freescout-signature": base64.b64encode(digest).decode()}
        digest = hmac.digest(self._webhook_secret, body, hashlib.sha256)
        return {
            **headers,
            "x-support-signature": base64.b64encode(digest).decode(),
            "x-support-delivery": mint_id(self._entropy, "", 32),
        }


def render_conversation(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation with its threads, as the API and the webhooks write it."""
    closed_by = AGENT if conversation.closed_at is not None else None
    newest = conversation.threads[-1].body if conversation.threads else ""
    return {
        "id": conversation.id,
        "number": conversation.id,
        "threadsCount": len(conversation.threads),
        "type": conversation.type,
        "folderId": 1,
        "status": conversation.status,
        "state": "published",
        "subject": conversation.subject,
        "preview": re.sub(r"<[^>]*>", "", newest)[:255],
        "mailboxId": conversation.mailbox_id,
        "assignee": None,
        "createdBy": dict(conversation.customer),
        "createdAt": _moment(conversation.created_at),
        "updatedAt": _moment(conversation.updated_at),
        "closedBy": None if closed_by is None else closed_by["id"],
        "closedByUser": closed_by,
        "closedAt": None if conversation.closed_at is None else _moment(conversation.closed_at),
        "userUpdatedAt": _moment(conversation.updated_at),
        "customerWaitingSince": {
            "time": _moment(conversation.created_at),
            "friendly": "Just now",
            "latestReplyFrom": "customer",
        },
        "source": {"type": "api", "via": "customer"},
        "cc": [],
        "bcc": [],
        "customer": dict(conversation.customer),
        "customFields": [],
        "_embedded": {"threads": [render_thread(conversation, thread) for thread in reversed(conversation.threads)]},
    }


def render_thread(conversation: Conversation, thread: Thread) -> dict[str, Any]:
    """Return a thread, as the API writes it."""
    return {
        "id": thread.id,
        "type": thread.type,
        "status": conversation.status,
        "state": thread.state,
        "action": {"type": "", "text": "", "associatedEntities": []},
        "body": thread.body,
        "source": {"type": "web", "via": thread.author["type"]},
        "customer": dict(conversation.customer),
        "createdBy": dict(thread.author),
        "assignedTo": None,
        "to": [conversation.customer["email"]] if thread.type == "message" else [],
        "cc": [],
        "bcc": [],
        "createdAt": _moment(thread.created_at),
        "openedAt": None,
        "_embedded": {"attachments": [dict(attachment) for attachment in thread.attachments]},
    }


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
