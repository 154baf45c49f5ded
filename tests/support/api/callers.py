"""Every kind of caller: people of every role, API keys, and credentials that fail."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, get_args

from soundmark.core.domain.tenancy.scope import KeyScope, Role
from support.api.core_client import Api
from support.api.core_settings import OPERATOR_TOKEN
from support.api.operations import Operation
from support.api.world import World
from support.identity.oidc_issuer import make_issuer_key
from support.tenancy.tenant import Tenant

ROLES: Final[tuple[Role, ...]] = get_args(Role)
KEY_SCOPES: Final[tuple[KeyScope, ...]] = get_args(KeyScope)
PASSWORD_ONLY: Final = {"acr": "1"}


@dataclass(frozen=True)
class Caller:
    """A caller, and what is true of them in the organisation of the call."""

    name: str
    credential: str | None = field(repr=False)
    refused: str | None = None  # The problem that the credential alone causes.
    subject_id: str = "nobody"
    role: Role | None = None
    has_mfa: bool = False
    is_platform_admin: bool = False
    key_of: str | None = None  # This project, another project, or another organisation.
    scopes: frozenset[str] = frozenset()

    def api(self, world: World) -> Api:
        """Return a client that sends this caller's credential."""
        return world.people.api.other(token=self.credential, peer="127.0.0.1")


def list_people(world: World) -> list[Caller]:
    """Return everybody who is not an API key; "stranger" and "root" must own nothing in the world's organisation."""
    token = world.people.issuer.token
    now = int(world.people.issuer.clock.unix_s())
    none = "unauthenticated"
    return [
        Caller("anonymous", None, none),
        Caller("the operator", OPERATOR_TOKEN, none),
        Caller("an expired token", token("owner", exp=now - 61), none),
        Caller("a token that is not yet valid", token("owner", nbf=now + 120), none),
        Caller("a token of another client", token("owner", azp="other"), none),
        Caller("an ID token", token("owner", typ="ID"), none),
        Caller("a token of another issuer", token("owner", iss="https://other.example"), none),
        Caller("a token signed by another key", token("owner", by=make_issuer_key("first", number=1)), none),
        Caller("an unverified address", token("owner", email_verified=False), "email_not_verified"),
        *(Caller(role, token(role), subject_id=role, role=role, has_mfa=True) for role in ROLES),
        *(Caller(f"{role}, password only", token(role, **PASSWORD_ONLY), subject_id=role, role=role) for role in ROLES),
        find_stranger(world),
        Caller("the stranger, password only", token("stranger", **PASSWORD_ONLY), subject_id="stranger"),
        *list_platform_admins(world),
    ]


def find_stranger(world: World) -> Caller:
    """Return a person who has no part in the world's organisation."""
    return Caller("a stranger", world.people.issuer.token("stranger"), subject_id="stranger", has_mfa=True)


def list_platform_admins(world: World) -> list[Caller]:
    """Return platform administrators, who are members of no organisation."""
    access = {"realm_access": {"roles": ["svc_platform_admin"]}}
    token = world.people.issuer.token
    facts: dict[str, Any] = {"subject_id": "root", "is_platform_admin": True}
    return [
        Caller("a platform administrator", token("root", **access), has_mfa=True, **facts),
        Caller("a platform administrator, password only", token("root", **access, **PASSWORD_ONLY), **facts),
    ]


def find_able_caller(world: World, operation: Operation) -> Caller:
    """Return somebody who may carry out the operation."""
    if operation.access["public"]:
        return Caller("anonymous", None)
    if operation.access["platform"]:
        return list_platform_admins(world)[0]
    return Caller("owner", world.people.issuer.token("owner"), subject_id="owner", role="owner", has_mfa=True)


async def make_server_keys(world: World, operation: Operation, elsewhere: Tenant) -> list[Caller]:
    """Make a key that is right for the operation, and one for each way in which a key can be wrong."""
    tenant, every = world.tenant, frozenset(KEY_SCOPES)
    other_project = await tenant.api.make_project(tenant.organization_id, "Other show")
    too_few = every - {operation.access["key_scope"]}

    async def make(name: str, of: Tenant = tenant, key_of: str = "this project", **facts: Any) -> Caller:
        scopes = facts.pop("scopes", every)
        key = await of.make_key(scopes=sorted(scopes), **facts.pop("body", {}))
        return Caller(name, key["secret"], key_of=key_of, scopes=scopes, subject_id=key["id"], **facts)

    revoked = await make("a revoked key", refused="unauthenticated")
    await tenant.api.post(f"/v1/api-keys/{revoked.subject_id}/revoke", params=tenant.query)
    rotated = await make("a key whose secret was rotated", refused="unauthenticated")
    await tenant.api.post(f"/v1/api-keys/{rotated.subject_id}/secret", params=tenant.query)
    expired = await make("an expired key", refused="unauthenticated")
    now = tenant.api.clock.now()
    times = (now - timedelta(days=2), now - timedelta(seconds=1), expired.subject_id)
    await world.rival.run("UPDATE api_keys SET created_at = %s, expires_at = %s WHERE id = %s", *times)
    return [
        await make("a key"),
        await make("a key without the scope", scopes=too_few),
        await make("a key of another project", key_of="another project", body={"project_id": other_project}),
        await make("a key of another organisation", elsewhere, "another organisation"),
        revoked,
        rotated,
        expired,
        Caller("a key that never existed", "xak_" + "A" * 43, "unauthenticated"),
    ]
