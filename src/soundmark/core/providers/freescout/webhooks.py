"""The desk's webhooks: their signature, and what is read of a conversation.

Source: contract, section 7, "Support"; FreeScout's module for the API and webhooks, for its own signature.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from soundmark.kit.crypto.secret import Secret, any_equal
from soundmark.kit.text.timestamps import parse_timestamp

SIGNATURE_HEADER: Final = "X-Support-Signature"
DELIVERY_HEADER: Final = "X-Support-Delivery"
NATIVE_SIGNATURE_HEADER: Final = "X-FreeScout-Signature"
NATIVE_EVENT_HEADER: Final = "X-FreeScout-Event"

_HEX: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]{27,43}=", re.ASCII)
_DELIVERY: Final = re.compile(r"[\x20-\x7e]{1,128}", re.ASCII)
_ID_MAX: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class DeskNotice:
    """What a webhook says of a conversation; `status` is the desk's own word, `ticket_id` None if it names none."""

    conversation_id: int
    status: str
    updated_at: datetime
    ticket_id: str | None


def is_signed(body: bytes, signature: str, secrets: Sequence[Secret]) -> bool:
    """Return whether one of the secrets signed exactly these bytes: HMAC-SHA-256, in base64 or hexadecimal."""
    given = bytes.fromhex(signature) if _HEX.fullmatch(signature) else _decode(signature)
    return _agrees(body, given, secrets, "sha256")


def is_natively_signed(body: bytes, signature: str, secrets: Sequence[Secret]) -> bool:
    """Return whether one of the secrets signed exactly these bytes the way a stock desk does: HMAC-SHA-1, in base64."""
    return _agrees(body, _decode(signature), secrets, "sha1")


def is_delivery_id(text: str) -> bool:
    """Return whether a delivery may have this id."""
    return _DELIVERY.fullmatch(text) is not None


def digest_delivery(delivery_id: str) -> bytes:
    """Return the digest by which a delivery is recognised."""
    return hashlib.sha256(b"id\0" + delivery_id.encode()).digest()


def digest_native_delivery(event: str, body: bytes) -> bytes:
    """Return the digest by which a delivery without an id is recognised."""
    return hashlib.sha256(b"native\0" + event.encode() + b"\0" + body).digest()


def read_notice(value: Any) -> DeskNotice | None:
    """Read what the desk sent about a conversation; return None for anything else."""
    if not isinstance(value, dict):
        return None
    conversation_id, status, updated_at = value.get("id"), value.get("status"), value.get("updatedAt")
    ticket_id = value.get("external_id")
    if type(conversation_id) is not int or not 1 <= conversation_id <= _ID_MAX:
        return None
    if not isinstance(status, str) or not isinstance(updated_at, str) or not isinstance(ticket_id, str | None):
        return None
    try:
        return DeskNotice(conversation_id, status, parse_timestamp(updated_at), ticket_id)
    except ValueError:
        return None


def _decode(signature: str) -> bytes:
    try:
        return base64.b64decode(signature, validate=True) if _BASE64.fullmatch(signature) else b""
    except binascii.Error:
        return b""


def _agrees(body: bytes, given: bytes, secrets: Sequence[Secret], name: str) -> bool:
    return any_equal((hmac.digest(secret.reveal().encode(), body, name) for secret in secrets), [given])
