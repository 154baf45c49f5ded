"""Downloads of archives, and an examination of them that shares nothing with the code that writes them."""

import base64
import hashlib
import json
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from support.api.core_client import Answer
from support.tenancy.tenant import Tenant

SEAL = b',"seal":'
PROJECT_MEMBERS = [
    "format",
    "exported_at",
    "organization_id",
    "project",
    "campaigns",
    "codes",
    "api_keys",
    "audience_integrations",
    "verification_keys",
    "counts",
    "seal",
]
ORGANIZATION_MEMBERS = [
    "format",
    "exported_at",
    "organization",
    "members",
    "projects",
    "campaigns",
    "codes",
    "api_keys",
    "audience_integrations",
    "verification_keys",
    "counts",
    "seal",
]


async def request_organization(tenant: Tenant) -> Answer:
    return await tenant.api.get(f"/v1/organizations/{tenant.organization_id}/export")


async def request_project(tenant: Tenant) -> Answer:
    return await tenant.api.get(f"/v1/projects/{tenant.project_id}/export", params=tenant.query)


async def export_organization(tenant: Tenant) -> dict[str, Any]:
    """Export the organisation, examine the archive, and return it."""
    return examine(await request_organization(tenant))


async def export_project(tenant: Tenant) -> dict[str, Any]:
    """Export the project, examine the archive, and return it."""
    return examine(await request_project(tenant))


def examine(answer: Answer) -> dict[str, Any]:
    """Return the archive in a successful response, after checking all that its bytes claim about themselves."""
    assert answer.status == 200, answer.body
    archive: dict[str, Any] = json.loads(answer.body, object_pairs_hook=_refuse_repetition)
    keys = {key["kid"]: _decode(key["x"]) for key in archive["verification_keys"]["keys"]}
    _examine_seal(answer.body, archive, keys)
    for code in archive["codes"]:
        signed = dict(code["signed_code"])
        _verify(keys[signed["key_id"]], signed)
        assert code["intent"] == code["signed_code"]["intent"]
        assert {name: code[name] for name in signed.keys() & code.keys()} == {
            name: signed[name] for name in signed.keys() & code.keys()
        }
    lists = {name: value for name, value in archive.items() if isinstance(value, list)}
    assert archive["counts"] == {name: len(records) for name, records in lists.items()}
    assert set(keys) == {code["signed_code"]["key_id"] for code in archive["codes"]} | {archive["seal"]["key_id"]}
    for records in lists.values():
        assert records == sorted(records, key=age_of), "oldest first, then by id"
    return archive


def _examine_seal(body: bytes, archive: dict[str, Any], keys: dict[str, bytes]) -> None:
    seal = archive["seal"]
    before, _, after = body.rpartition(SEAL)
    assert json.loads(after.removesuffix(b"}\n")) == seal, (
        "the seal is the last member, and at most one newline follows"
    )
    assert seal["digest"] == _encode(hashlib.sha256(before).digest())
    subject = archive.get("project") or archive["organization"]
    assert {name: seal[name] for name in ("version", "format", "subject_id", "exported_at")} == {
        "version": 1,
        "format": archive["format"],
        "subject_id": subject["id"],
        "exported_at": archive["exported_at"],
    }
    _verify(keys[seal["key_id"]], dict(seal))


def _verify(public_key: bytes, signed: dict[str, Any]) -> None:
    signature = _decode(signed.pop("signature"))
    Ed25519PublicKey.from_public_bytes(public_key).verify(signature, rfc8785.dumps(signed))


def age_of(record: dict[str, Any]) -> tuple[str, str]:
    """Return what the lists of an archive are sorted by."""
    identity = record.get("id") or record.get("xr_id") or record["subject_id"]
    return record.get("created_at") or record["issued_at"], identity


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert _encode(data) == text, "canonical base64url"
    return data


def _refuse_repetition(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    assert len(found) == len(members), "each member once"
    return found
