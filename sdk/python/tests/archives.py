"""Genuine archives, made from the wire contract with hashlib, PyNaCl and rfc8785 and without the package under test."""

import hashlib
import json
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import rfc8785

from .issuer import MEASURED, NOW, UNMEASURED, Issuer, Json, base64url, compact, digest, timestamp

ORGANIZATION_ID: Final = "org_0123456789abcdefABCDEF"
PROJECT_ID: Final = "prj_0123456789abcdefABCDEF"
OTHER_PROJECT_ID: Final = "prj_OTHER56789abcdefABCDEF"
EXPORTED_AT: Final = timestamp(NOW + timedelta(hours=1))
CREATED_AT: Final = timestamp(NOW - timedelta(days=1))

# The lists of both formats, in their order.
PROJECT_LISTS: Final = ("campaigns", "codes", "api_keys", "audience_integrations")
ORGANIZATION_LISTS: Final = ("members", "projects", *PROJECT_LISTS)

PROJECT: Final[Json] = {
    "id": PROJECT_ID,
    "organization_id": ORGANIZATION_ID,
    "name": "Morning show",
    "created_at": CREATED_AT,
    "deletion_requested_at": None,
}
ORGANIZATION: Final[Json] = {
    "id": ORGANIZATION_ID,
    "name": "Radio Nordlicht",
    "role": "owner",
    "created_at": CREATED_AT,
    "deletion_requested_at": None,
}


def make_id(prefix: str, number: int) -> str:
    return f"{prefix}{number:022d}"


def make_member(number: int) -> Json:
    return {
        "subject_id": f"person-{number}",
        "email": f"p{number}@example.org",
        "role": "owner",
        "created_at": CREATED_AT,
    }


def make_campaign(number: int, project_id: str = PROJECT_ID) -> Json:
    return {
        "id": make_id("cmp_", number),
        "organization_id": ORGANIZATION_ID,
        "project_id": project_id,
        "name": "Été",
        "starts_at": None,
        "ends_at": timestamp(NOW + timedelta(days=9)),
        "status": "active",
        "created_at": CREATED_AT,
        "archived_at": None,
    }


def make_api_key(number: int, project_id: str = PROJECT_ID) -> Json:
    return {
        "id": make_id("key_", number),
        "organization_id": ORGANIZATION_ID,
        "project_id": project_id,
        "scopes": ["codes:read", "codes:write"],
        "status": "active",
        "created_at": CREATED_AT,
        "expires_at": timestamp(NOW + timedelta(days=9)),
        "last_used_at": None,
        "secret_rotated_at": None,
        "revoked_at": None,
    }


def make_integration(number: int, project_id: str = PROJECT_ID) -> Json:
    return {
        "id": make_id("int_", number),
        "organization_id": ORGANIZATION_ID,
        "project_id": project_id,
        "mode": "demo",
        "retention_days": 14,
        "status": "active",
        "core_key_id": "key-2026-11",
        "created_at": CREATED_AT,
        "secret_rotated_at": None,
        "revoked_at": None,
    }


def make_code(signer: Issuer, number: int, **changes: Any) -> Json:
    """Return the record of a Code; every second one is measured."""
    token = f"brd_{number:016d}"
    facts = {
        "xr_id": make_id("xr_", number),
        "policy": MEASURED if number % 2 else UNMEASURED,
        "token_digest": digest(token),
        **changes,
    }
    signed = deepcopy(signer.signed_code(**facts))
    shared = ("xr_id", "organization_id", "project_id", "campaign_id", "issuer", "issued_at", "expires_at")
    return {
        **{name: signed[name] for name in shared},
        "broadcast_token": token,
        "broadcast_frame": f"XRC1:{token}",
        "status": "active",
        "revoked_at": None,
        "audience_enabled": signed["policy"]["audience_measurement"],
        "audience_integration_id": signed["policy"]["audience_integration_id"],
        "intent": deepcopy(signed["intent"]),
        "signed_code": signed,
    }


def make_historic_jwk(issuer: Issuer, **changes: Any) -> Json:
    period = {"activated_at": CREATED_AT, "superseded_at": None}
    return {**issuer.jwk(), **period, **changes}


@dataclass
class ArchiveMaker:
    """A maker of archives: correct until a part of it is replaced. `sealed` members replace those of the seal."""

    members: Json
    issuer: Issuer = field(default_factory=Issuer)
    sealed: Json = field(default_factory=dict)
    ending: bytes = b"}\n"

    def change(self, path: str, value: Any) -> None:
        """Replace the value at a place such as `codes.0.issuer`; `...` removes it."""
        *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]
        holder: Any = self.members
        for part in outer:
            holder = holder[part]
        if value is ...:
            del holder[last]
        else:
            holder[last] = value

    def sign_code(self, index: int, **changes: Any) -> None:
        """Sign a Code again with other facts, which its record does not have."""
        record = self.members["codes"][index]
        signed = {name: value for name, value in record["signed_code"].items() if name != "signature"}
        record["signed_code"] = self.issuer.signed({**signed, **changes})

    def write_members(self) -> bytes:
        """Return the text before the seal, with one record on a line."""
        return b"{" + b",".join(compact(name) + b":" + _write(value) for name, value in self.members.items())

    def write(self) -> bytes:
        """Return the sealed file."""
        return self.seal(self.write_members())

    def seal(self, text: bytes) -> bytes:
        """Return some text with its seal."""
        subject = self.members.get("project") or self.members.get("organization")
        seal = {
            "version": 1,
            "format": self.members["format"],
            "subject_id": subject.get("id") if isinstance(subject, dict) else None,
            "exported_at": self.members["exported_at"],
            "digest": base64url(hashlib.sha256(text).digest()),
            "key_id": self.issuer.key_id,
            **self.sealed,
        }
        signed = {"signature": self.issuer.sign(rfc8785.dumps(seal)), **seal}
        return text + b',"seal":' + compact({**signed, **self.sealed}) + self.ending


def _write(value: Any) -> bytes:
    if isinstance(value, list) and value:
        return b"[\n" + b",\n".join(json.dumps(item, ensure_ascii=False).encode() for item in value) + b"\n]"
    return compact(value)


def make_project_archive(*, codes: int = 3) -> ArchiveMaker:
    """Return the archive of a project whose Codes two keys have signed."""
    issuer, before = Issuer(), Issuer(b"the-signing-key-before-this-one!", "key-2026-05")
    lists: Json = {
        "campaigns": [make_campaign(number) for number in range(2)],
        "codes": [make_code(before if number == 0 else issuer, number) for number in range(codes)],
        "api_keys": [make_api_key(number) for number in range(2)],
        "audience_integrations": [make_integration(number) for number in range(2)],
    }
    return _make_archive(
        issuer,
        {"format": "svc-project-archive-v1", "organization_id": ORGANIZATION_ID, "project": deepcopy(PROJECT)},
        lists,
        [make_historic_jwk(issuer), make_historic_jwk(before, status="retired")] if codes else [issuer.jwk()],
    )


def make_organization_archive() -> ArchiveMaker:
    """Return the archive of an organisation with two projects."""
    issuer = Issuer()
    other = {**PROJECT, "id": OTHER_PROJECT_ID}
    lists: Json = {
        "members": [make_member(number) for number in range(2)],
        "projects": [deepcopy(PROJECT), other],
        "campaigns": [make_campaign(0), make_campaign(1, OTHER_PROJECT_ID)],
        "codes": [make_code(issuer, 0), make_code(issuer, 1, project_id=OTHER_PROJECT_ID, campaign_id=None)],
        "api_keys": [make_api_key(0)],
        "audience_integrations": [],
    }
    head = {"format": "svc-organization-archive-v1", "organization": deepcopy(ORGANIZATION)}
    return _make_archive(issuer, head, lists, [issuer.jwk()])


def _make_archive(issuer: Issuer, head: Json, lists: Json, keys: list[Json]) -> ArchiveMaker:
    first, *others = head.items()
    members = {
        **dict([first]),
        "exported_at": EXPORTED_AT,
        **dict(others),
        **lists,
        "verification_keys": {"keys": keys},
        "counts": {name: len(records) for name, records in lists.items()},
    }
    return ArchiveMaker(members, issuer)
