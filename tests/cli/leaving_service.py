"""A small service that exports and deletes, and misbehaves on command; it signs with PyNaCl and rfc8785."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import rfc8785
from nacl.signing import SigningKey
from support.processes.running_apps import served_in_thread

from soundmark.kit.http.asgi import Receive, Scope, Send

ORGANIZATION: Final = "org_leaving6789abcdefABCDE"
PROJECT: Final = "prj_leaving6789abcdefABCDE"
CERTIFICATE: Final = "dct_0123456789abcdefABCDEF"
KEY: Final = SigningKey(b"the-signing-key-of-this-service!")
KEY_ID: Final = "sig_leaving"
AT: Final = "2026-11-20T10:00:00.000Z"
CREDENTIAL: Final = "header.claims.signature"

_ORGANIZATION: Final = {
    "id": ORGANIZATION,
    "name": "Radio Nordlicht",
    "role": "owner",
    "created_at": AT,
    "deletion_requested_at": None,
    "suspended_at": None,
}
_PROJECT: Final = {
    "id": PROJECT,
    "organization_id": ORGANIZATION,
    "name": "Morning show",
    "created_at": AT,
    "deletion_requested_at": None,
}
_COUNTS: Final = {"campaigns": 0, "codes": 3, "active_codes": 1, "api_keys": 2, "audience_integrations": 0}

_LISTS: Final = ("campaigns", "codes", "api_keys", "audience_integrations")

Answer = tuple[int, dict[str, str], bytes]


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def sign(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "signature": encode(KEY.sign(rfc8785.dumps(document)).signature)}


def make_key() -> dict[str, Any]:
    point = encode(bytes(KEY.verify_key))
    fixed = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": KEY_ID, "x": point}
    return {**fixed, "status": "active", "activated_at": AT, "superseded_at": None}


def make_archive() -> bytes:
    """Return the archive of a project without Codes."""
    members = {
        "format": "svc-project-archive-v1",
        "exported_at": AT,
        "organization_id": ORGANIZATION,
        "project": _PROJECT,
        **{name: [] for name in _LISTS},
        "verification_keys": {"keys": [make_key()]},
        "counts": dict.fromkeys(_LISTS, 0),
    }
    text = json.dumps(members, separators=(",", ":")).encode()[:-1]
    seal = {
        "version": 1,
        "format": "svc-project-archive-v1",
        "subject_id": PROJECT,
        "exported_at": AT,
        "digest": encode(hashlib.sha256(text).digest()),
        "key_id": KEY_ID,
    }
    return text + b',"seal":' + json.dumps(sign(seal)).encode() + b"}\n"


def make_certificate(kind: str = "project") -> dict[str, Any]:
    core = ("campaigns", "codes", "api_keys", "webhook_endpoints")
    if kind == "organization":
        more = ("members", "invitations", "audit_entries", "tickets", "checkouts", "subscriptions")
        core = ("projects", *core, *more)
    audience = ("integrations", "events", "integrity_days", "legacy_days", "spent_proofs")
    return sign(
        {
            "version": 1,
            "certificate_id": CERTIFICATE,
            "subject": {
                "type": kind,
                "id": PROJECT if kind == "project" else ORGANIZATION,
                "organization_id": ORGANIZATION,
            },
            "requested_at": AT,
            "completed_at": "2026-11-20T10:00:07.000Z",
            "deleted": {"core": dict.fromkeys(core, 3), "audience": dict.fromkeys(audience, 4)},
            "remaining": {"core": dict.fromkeys(core, 0), "audience": dict.fromkeys(audience, 0)},
            "key_id": KEY_ID,
        }
    )


def make_decode_certificate(measured: dict[str, Any]) -> dict[str, Any]:
    return sign(
        {
            "version": 1,
            "certificate_id": "dcc_0123456789abcdefABCDEF",
            "xr_id": "xr_0123456789abcdefABCDEF",
            "organization_id": ORGANIZATION,
            "issued_at": AT,
            "measured": measured,
            "key_id": KEY_ID,
        }
    )


def make_pack() -> dict[str, Any]:
    """Return an offline pack without Codes."""
    return sign(
        {
            "version": 1,
            "format": "svc-offline-pack-v1",
            "pack_id": "opk_0123456789abcdefABCDEF",
            "project_id": PROJECT,
            "campaign_id": None,
            "issued_at": AT,
            "valid_until": "2026-11-20T16:00:00.000Z",
            "codes": [],
            "key_id": KEY_ID,
        }
    )


def answer(document: Any, status: int = 200, **headers: str) -> Answer:
    return status, {"content-type": "application/json", **headers}, json.dumps(document).encode()


def problem(status: int, code: str) -> Answer:
    body = {"type": f"/problems/{code}", "title": "T", "status": status, "detail": "Refused.", "code": code}
    return status, {"content-type": "application/problem+json"}, json.dumps(body).encode()


@dataclass
class LeavingService:
    """Correct until a part is replaced; `deletions` are the answers to the next requests to delete."""

    url: str = ""
    archive: bytes = field(default_factory=make_archive)
    blockers: list[dict[str, Any]] = field(default_factory=list)
    deletions: list[Answer] = field(default_factory=list)
    certificate: dict[str, Any] = field(default_factory=make_certificate)
    is_deleted: bool = False
    requests: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)

    def respond(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Return the answer to a request."""
        self.requests.append(f"{method} {path}")
        if path == f"/v1/deletion-certificates/{CERTIFICATE}" and self.is_deleted:
            return answer(self.certificate)
        if path.startswith("/v1/deletion-certificates/"):
            return problem(404, "deletion_certificate_not_found")
        if path == "/v1/keys/history":
            return answer({"keys": [make_key()]})
        if headers.get("authorization") != f"Bearer {CREDENTIAL}":
            return problem(401, "unauthenticated")
        return self._respond_to_member(method, path, body)

    def _respond_to_member(self, method: str, path: str, body: bytes) -> Answer:
        if self.is_deleted:
            return problem(404, "project_not_found")
        if method == "DELETE":
            return self._delete(body)
        last = path.rpartition("/")[2]
        if last == "closure-preflight":
            counts = _COUNTS if PROJECT in path else {"projects": 1, **_COUNTS, "members": 1}
            return answer(
                {
                    "can_delete": not self.blockers,
                    "blockers": self.blockers,
                    "deletes": counts,
                    "certificate_id": CERTIFICATE,
                    "deletion_requested_at": None,
                }
            )
        if last == "export":
            digest = base64.b64encode(hashlib.sha256(make_archive()).digest()).decode()
            return 200, {"content-type": "application/json", "content-digest": f"sha-256=:{digest}:"}, self.archive
        listed = {"organizations": _ORGANIZATION, "projects": _PROJECT}[last]
        return answer({"data": [listed], "next_cursor": None})

    def _delete(self, body: bytes) -> Answer:
        self.bodies.append(json.loads(body))
        if self.deletions:
            return self.deletions.pop(0)
        self.is_deleted = True
        return 204, {"location": f"/v1/deletion-certificates/{CERTIFICATE}"}, b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, as ASGI has it."""
        assert scope["type"] == "http", "it has no lifespan"
        body = b""
        while True:
            message: Any = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        status, fields, content = self.respond(scope["method"], scope["path"], headers, body)
        raw = [(name.encode(), value.encode()) for name, value in fields.items()]
        length = [] if status == 204 else [(b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": [*raw, *length]})
        await send({"type": "http.response.body", "body": content})


@contextmanager
def serving_leavers() -> Iterator[LeavingService]:
    """Serve a service until the block ends."""
    service = LeavingService()
    with served_in_thread(service) as url:
        service.url = url
        yield service
