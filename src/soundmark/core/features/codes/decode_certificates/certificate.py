"""Writing and signing a decode certificate."""

import json
from datetime import datetime
from typing import Final

from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp
from soundmark.wire.decode_certificate import CERTIFICATE_VERSION, Measurement

_MEASURED_BYTES_MAX: Final = 4 * 1024 * 1024  # Of a request of 1 MiB, in which `9e1` stands for three characters.


def canonicalize_measurement(measurement: Measurement) -> bytes:
    """Return the canonical JSON of what was measured."""
    return canonicalize(measurement.model_dump(), size_max_bytes=_MEASURED_BYTES_MAX)


def write_certificate(
    key: SigningKey, certificate_id: str, *, organization_id: str, xr_id: str, issued_at: datetime, measured: bytes
) -> bytes:
    """Return the JSON text of a signed certificate, its members in the order of the contract.

    `measured` is canonical, and is part of both the text and the canonical form that is signed.

    Source: contract, section 12.
    """
    issued = format_timestamp(issued_at)
    # By its name, `measured` stands between these two.
    before = canonicalize({"certificate_id": certificate_id, "issued_at": issued, "key_id": key.key_id})
    after = canonicalize({"organization_id": organization_id, "version": CERTIFICATE_VERSION, "xr_id": xr_id})
    signature = base64url.encode(key.sign(_splice(before, measured, after)))
    head = {
        "version": CERTIFICATE_VERSION,
        "certificate_id": certificate_id,
        "xr_id": xr_id,
        "organization_id": organization_id,
        "issued_at": issued,
    }
    return _splice(_write(head), measured, _write({"key_id": key.key_id, "signature": signature}))


def _splice(before: bytes, measured: bytes, after: bytes) -> bytes:
    """Return one object with the members of `before`, the member `measured`, and the members of `after`."""
    return before[:-1] + b',"measured":' + measured + b"," + after[1:]


def _write(value: dict[str, object]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
