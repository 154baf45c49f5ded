"""What the form of an issuance asks for, and the exact request that it becomes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from soundmark_sdk import Intent
from soundmark_sdk.client import IssueRequest
from soundmark_sdk.client.calls import write_body
from soundmark_sdk.failures import Unverifiable
from soundmark_sdk.strict_json import parse

from soundmark.console.forms import FieldRefused, Form, FormMalformed
from soundmark.console.visit import Visit
from soundmark.kit.text import base64url

# API v1, "Limits".
BATCH_MAX: Final = 100
_KEY_BYTES: Final = 32
_KEY: Final = re.compile(r"[A-Za-z0-9._~-]{16,128}")
# `mailto:somebody` has a scheme, `example.org:8443` a port.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?![0-9])")
_AFTER_HOST: Final = re.compile(r"[/?#]")
# By their names, what the buttons beside the expiry choose, from the time of the person's own clock.
PRESETS: Final[Mapping[str, Callable[[datetime], datetime]]] = {
    "hour": lambda now: now + timedelta(hours=1),
    "today": lambda now: now.replace(hour=23, minute=59),
    "week": lambda now: now + timedelta(weeks=1),
}
_PRINTABLE: Final = re.compile(r"[^\x00-\x20\x7f\\]+")


@dataclass(frozen=True, slots=True)
class Issuance:
    """One Code to issue, or a batch of `count` that differ only in their ids and tokens."""

    request: IssueRequest
    count: int

    @property
    def is_batch(self) -> bool:
        """Whether the route for batches issues it."""
        return self.count > 1

    def write_body(self) -> bytes:
        """Return the body of the request, the bytes that the client sends."""
        tenant = {"organization_id": self.request.organization_id, "project_id": self.request.project_id}
        document: dict[str, Any] = {**tenant, **self.request.make_document()}
        return write_body({**document, "count": self.count} if self.is_batch else document)


def read_issuance(visit: Visit) -> Issuance:
    """Return what the form asks to issue in the project of the URL.

    Raises: FieldRefused.
    """
    form = visit.form
    count = form.integer("count")
    if not 1 <= count <= BATCH_MAX:
        raise FieldRefused("count", "codes.issue.count_refused")
    expires_at = form.instant("expires_at")
    if expires_at is None:
        raise FieldRefused("expires_at", "forms.not_a_time")
    is_link = form.text("mode") == "link"
    request = IssueRequest(
        issuer=form.text("issuer"),
        expires_at=expires_at,
        intent=_read_link(form) if is_link else _read_intent(form),
        campaign_id=form.text("campaign_id") or None,
        audience_integration_id=form.text("integration_id") or None,
        organization_id=visit.organization_id,
        project_id=visit.project_id,
    )
    try:
        request.make_document()
    except ValueError:
        raise FieldRefused("url" if is_link else "resource", "codes.issue.intent_refused") from None
    return Issuance(request, count)


def choose_expiry(form: Form, now: datetime) -> Form:
    """Return the form with the expiry that its button `preset` stands for, in the time zone that the form names.

    Raises: FormMalformed.
    """
    try:
        choose, zone = PRESETS[form.text("preset")], ZoneInfo(form.text("expires_at_zone") or "UTC")
    except (KeyError, ValueError, OSError, ZoneInfoNotFoundError):
        raise FormMalformed from None
    text = choose(now.astimezone(zone)).strftime("%Y-%m-%dT%H:%M")
    return Form([*(each for each in form if each[0] not in {"preset", "expires_at"}), ("expires_at", text)])


def complete_address(text: str) -> str:
    """Return an address, with `https://` before one that begins with a host."""
    host = _AFTER_HOST.split(text, maxsplit=1)[0]
    if "://" in text or "." not in host or "@" in host or _SCHEME.match(text):
        return text
    return f"https://{text}"


def read_key(form: Form) -> str:
    """Return the idempotency key that the console gave to the form.

    Raises: FormMalformed.
    """
    key = form.text("idempotency_key")
    if _KEY.fullmatch(key) is None:
        raise FormMalformed
    return key


def make_key(visit: Visit) -> str:
    """Return a new idempotency key of 256 random bits."""
    return base64url.encode(visit.console.entropy.take(_KEY_BYTES))


def _read_link(form: Form) -> Intent:
    url, title = complete_address(form.text("url")), form.text("title")
    try:
        parts = urlsplit(url)
        is_web_address = parts.scheme == "https" and bool(parts.hostname) and _PRINTABLE.fullmatch(url) is not None
    except ValueError:  # The host is a broken IPv6 address.
        is_web_address = False
    if not is_web_address:
        raise FieldRefused("url", "codes.issue.url_refused")
    return Intent("link", "open", {"url": url, "title": title} if title else {"url": url})


def _read_intent(form: Form) -> Intent:
    try:
        resource = parse(form.raw("resource").encode())
    except (Unverifiable, UnicodeEncodeError):
        raise FieldRefused("resource", "codes.issue.resource_refused") from None
    if not isinstance(resource, dict):
        raise FieldRefused("resource", "codes.issue.resource_refused")
    return Intent(form.text("type"), form.text("action"), resource)
