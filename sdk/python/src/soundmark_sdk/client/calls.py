"""Describe requests to the service's API."""

import json
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

# API v1, "Limits": the size of a page at most.
PAGE_SIZE_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Call:
    """One request. It `is_repeatable` when sending it twice has the same effect as sending it once.

    Without `has_credential` it is sent as anybody's. The answer to a download that `is_digested` states its digest.
    """

    method: str
    path: str
    query: Mapping[str, str | int | None] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False
    accept: str = "application/json"
    has_credential: bool = True
    is_digested: bool = False

    def write_target(self) -> str:
        """Return the path with its query; parameters that are None are left out."""
        query = {name: str(value) for name, value in self.query.items() if value is not None}
        return self.path + (f"?{urllib.parse.urlencode(query)}" if query else "")


def make_get(path: str, **query: str | int | None) -> Call:
    """Return a GET; parameters that are None are left out."""
    return Call("GET", path, query, is_repeatable=True)


def make_call(
    method: str, path: str, document: Any = None, *, is_repeatable: bool = False, **query: str | None
) -> Call:
    """Return a request, with a JSON body if there is a document; parameters that are None are left out."""
    body = None if document is None else write_body(document)
    return Call(method, path, query, body, is_repeatable=is_repeatable)


def make_certificate_call(certificate_id: str) -> Call:
    """Return the request for a deletion certificate, which needs no credential: its id is the key."""
    path = f"/v1/deletion-certificates/{quote_id(certificate_id)}"
    return Call("GET", path, is_repeatable=True, has_credential=False)


def make_decode_certificate_call(certificate_id: str) -> Call:
    """Return the request for a decode certificate, which needs no credential: its id is the key."""
    path = f"/v1/decode-certificates/{quote_id(certificate_id)}"
    return Call("GET", path, is_repeatable=True, has_credential=False)


def make_next(call: Call, cursor: str) -> Call:
    """Return the request for the page of a list that begins at a cursor."""
    query: dict[str, Any] = {**call.query, "cursor": cursor}
    return Call(call.method, call.path, query, is_repeatable=True)


def write_body(document: Any) -> bytes:
    """Return the JSON of a request.

    Raises: ValueError for what JSON cannot say.
    """
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        # The message must not repeat the value, which may be a secret.
        raise ValueError("The request cannot be written as JSON.") from None


def quote_id(identity: str) -> str:
    """Return an id as one segment of a path.

    Raises: ValueError for a text that would change the path.
    """
    try:
        quoted = urllib.parse.quote(identity, safe="")
    except UnicodeEncodeError:
        quoted = ""
    if quoted in {"", ".", ".."}:
        raise ValueError("That is not an id.")
    return quoted
