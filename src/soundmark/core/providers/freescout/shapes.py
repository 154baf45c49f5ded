"""The members of the desk's objects that are read. Notes, attachments and addresses are left unread.

Source: the documents of FreeScout's module for the API and webhooks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from soundmark.core.domain.support.reply import split_reference
from soundmark.core.domain.support.ticket import MessageAuthor, TicketMessage
from soundmark.core.providers.freescout.html_text import to_text
from soundmark.kit.text.timestamps import parse_timestamp

_AUTHORS: Final[dict[str, MessageAuthor]] = {"customer": "customer", "message": "agent"}
_ID_MAX: Final = 2**53 - 1
_ID: Final = re.compile(r"[0-9]{1,16}", re.ASCII)
DeskId = Annotated[int, msgspec.Meta(ge=1, le=_ID_MAX)]


class DeskShapeInvalid(Exception):
    """An object lacks a documented member, or has another type of it."""


@dataclass(frozen=True, slots=True)
class DeskConversation:
    """A conversation as the desk has it; `status` is the desk's own word."""

    id: int
    mailbox_id: int
    subject: str = field(repr=False)
    status: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class DeskDetail:
    """A conversation with the messages that its customer may see, the oldest first.

    `reply_threads` is the thread of each reply, by the reply's id: of several the first, and hidden ones too.
    """

    conversation: DeskConversation
    messages: list[TicketMessage] = field(repr=False)
    reply_threads: Mapping[str, int]


class _Conversation(msgspec.Struct):
    id: DeskId
    mailbox_id: DeskId = msgspec.field(name="mailboxId")
    status: str
    updated_at: str = msgspec.field(name="updatedAt")
    subject: str | None = None


class _FoundConversations(msgspec.Struct):
    conversations: list[_Conversation]


class _ConversationPage(msgspec.Struct):
    embedded: _FoundConversations = msgspec.field(name="_embedded")


class _Folder(msgspec.Struct):
    id: DeskId


class _FoundFolders(msgspec.Struct):
    folders: list[_Folder]


class _FolderPage(msgspec.Struct):
    embedded: _FoundFolders = msgspec.field(name="_embedded")


class _Thread(msgspec.Struct):
    id: DeskId
    type: str
    state: str
    created_at: str = msgspec.field(name="createdAt")
    body: str | None = None


class _Threads(msgspec.Struct):
    threads: list[_Thread]


class _Detail(_Conversation, kw_only=True):
    embedded: _Threads = msgspec.field(name="_embedded")


def require_folders(value: Any) -> None:
    """Require a page of the folders of a mailbox.

    Raises: DeskShapeInvalid.
    """
    _convert(value, _FolderPage)


def read_found(value: Any) -> list[DeskConversation]:
    """Return the conversations of a page of the list.

    Raises: DeskShapeInvalid.
    """
    page: _ConversationPage = _convert(value, _ConversationPage)
    return [_conversation_of(each) for each in page.embedded.conversations]


def read_detail(value: Any) -> DeskDetail:
    """Return a conversation with its messages. They are without the references of replies.

    Raises: DeskShapeInvalid.
    """
    detail: _Detail = _convert(value, _Detail)
    messages: list[TicketMessage] = []
    reply_threads: dict[str, int] = {}
    for thread in sorted(detail.embedded.threads, key=lambda each: each.id):
        author = _AUTHORS.get(thread.type)
        if author is None:
            continue
        text, reply_id = to_text(thread.body or ""), None
        if author == "customer":
            text, reply_id = split_reference(text)
        if reply_id is not None:
            reply_threads.setdefault(reply_id, thread.id)
        if thread.state == "published":
            messages.append(TicketMessage(author, text, _read_moment(thread.created_at)))
    messages.sort(key=lambda each: each.created_at)  # Those of one second stay in the order of their ids.
    return DeskDetail(_conversation_of(detail), messages, reply_threads)


def read_created_id(value: Any, header: str | None) -> int:
    """Return the id of a new conversation or thread, which is in a header, or else in the body.

    Raises: DeskShapeInvalid.
    """
    if header is not None:
        value = {"id": int(header) if _ID.fullmatch(header) else None}
    created: _Created = _convert(value, _Created)
    return created.id


class _Created(msgspec.Struct):
    id: DeskId


def _convert(value: Any, shape: type[Any]) -> Any:
    try:
        return msgspec.convert(value, type=shape)
    except (msgspec.ValidationError, RecursionError):
        # Without the library's text, which may repeat the object.
        raise DeskShapeInvalid from None


def _conversation_of(read: _Conversation) -> DeskConversation:
    return DeskConversation(read.id, read.mailbox_id, read.subject or "", read.status, _read_moment(read.updated_at))


def _read_moment(text: str) -> datetime:
    try:
        return parse_timestamp(text)
    except ValueError:
        raise DeskShapeInvalid from None
