"""Filling Core's database with many genuine Codes, faster than the API: the same bytes and rows, in one COPY."""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from soundmark.core.access.server_keys import digest_of_secret
from soundmark.core.domain.codes.address import address_of
from soundmark.core.domain.codes.code import Facts, payload_of
from soundmark.core.features.codes.signing_keys.service import ensure_active, list_keys
from soundmark.core.live.keyring import unseal_key
from soundmark.core.operator import open_context
from soundmark.kit.crypto.canonical import canonicalize
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.text import base64url
from soundmark.settings import KeysSettings, read

ORGANIZATION_ID = "org_" + "b" * 22
PROJECT_ID = "prj_" + "b" * 22
API_KEY_ID = "key_" + "b" * 22
PERSON = "bench-person"
RESOURCE = {"url": "https://example.org/programmes/tonight", "title": "Tonight's programme", "at": 1795204968}
INTENT = {"type": "link", "action": "open", "resource": RESOURCE}


async def first_key(url: Secret, master_key: bytes) -> SigningKey:
    """Return the key that Core signs with, made if there was none."""
    given = {"CORE_DATABASE_URL": url.reveal(), "MASTER_KEY": base64url.encode(master_key)}
    settings = read(KeysSettings, {f"SOUNDMARK_{name}": value for name, value in given.items()})
    async with open_context(settings, "bench") as ctx:
        await ensure_active(ctx)
        active = next(record for record in await list_keys(ctx) if record.status == "active")
        return unseal_key(active, ctx.sealer)


def token_of(number: int) -> str:
    """Return the token of the `number`-th seeded Code, which the load generator thus knows."""
    return "brd_" + base64url.encode(hashlib.sha256(f"bench {number}".encode()).digest())[:16]


def xr_id_of(number: int) -> str:
    """Return the id of the `number`-th seeded Code."""
    return f"xr_{number:022d}"


def seed_codes(url: Secret, key: SigningKey, numbers: range, *, campaign_id: str | None = None) -> None:
    """Store the Codes with these numbers."""
    now = datetime.now(UTC).replace(microsecond=0)
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO organizations (id, name, created_at) VALUES (%s, 'Bench', %s) ON CONFLICT DO NOTHING",
            (ORGANIZATION_ID, now),
        )
        connection.execute(
            "INSERT INTO projects (organization_id, id, name, created_at) VALUES (%s, %s, 'Bench', %s)"
            " ON CONFLICT DO NOTHING",
            (ORGANIZATION_ID, PROJECT_ID, now),
        )
        connection.execute(
            "INSERT INTO plans (id, name, product, monthly_code_quota, active, updated_at)"
            " VALUES ('plan_bench', 'Bench', 'codes', 1000000000, true, now()) ON CONFLICT DO NOTHING"
        )
        connection.execute(
            "INSERT INTO code_entitlements (organization_id, plan_id) VALUES (%s, 'plan_bench') ON CONFLICT DO NOTHING",
            (ORGANIZATION_ID,),
        )
        # The operator's own, so that the tenant's routes can be measured too.
        connection.execute(
            "INSERT INTO members (organization_id, subject_id, email, role, created_at)"
            " VALUES (%s, 'operator', 'operator@localhost', 'owner', %s) ON CONFLICT DO NOTHING",
            (ORGANIZATION_ID, now),
        )
        rows = list(_rows(facts_of(key, now, campaign_id), numbers))
        with connection.cursor() as cursor:
            with cursor.copy(
                "COPY broadcasts (token, payload, signature, organization_id) FROM STDIN (FORMAT BINARY)"
            ) as copy:
                copy.set_types(["text", "bytea", "bytea", "text"])
                for token, _, payload in rows:
                    copy.write_row((token, payload, key.sign(payload), ORGANIZATION_ID))
            with cursor.copy(
                "COPY codes (organization_id, xr_id, project_id, campaign_id, issuer, issued_at, expires_at,"
                " broadcast_token, key_id, address) FROM STDIN"
            ) as copy:
                address = address_of(RESOURCE)
                tenant, rest = (ORGANIZATION_ID,), (PROJECT_ID, campaign_id, "Bench", now, now + _LIFE)
                for token, xr_id, _ in rows:
                    copy.write_row((*tenant, xr_id, *rest, token, key.key_id, address))


def seed_unrequested(url: Secret, count: int) -> None:
    """Store so many further broadcasts, which nobody requests, and put all into the order of their random tokens.

    They are copies of a genuine one with tokens of their own, so that ten million take minutes.
    """
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute("SET maintenance_work_mem = '1GB'")
        connection.execute(
            """
            INSERT INTO broadcasts (token, payload, signature, organization_id)
            SELECT 'brd_' || left(translate(encode(sha256(('bench ' || n)::bytea), 'base64'), '+/', '-_'), 16),
                   payload, signature, organization_id
              FROM (SELECT payload, signature, organization_id FROM broadcasts LIMIT 1) AS genuine,
                   generate_series(-%s::int, -1) AS n
            """,
            (count,),
        )
        connection.execute("CLUSTER broadcasts USING broadcasts_pkey")


def settle(url: Secret) -> None:
    """Bring the database into the state that it would have some time after it was filled."""
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE broadcasts")
        connection.execute("VACUUM ANALYZE codes")


_LIFE = timedelta(days=30)


def seed_callers(url: Secret, secret: str) -> None:
    """Create a person who owns the organisation, and an API key with this secret that may read its Codes."""
    now = datetime.now(UTC)
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO members (organization_id, subject_id, email, role, created_at)"
            " VALUES (%s, %s, 'bench-person@example.org', 'owner', %s)",
            (ORGANIZATION_ID, PERSON, now),
        )
        connection.execute(
            "INSERT INTO api_keys (organization_id, id, project_id, scopes, created_at, expires_at)"
            " VALUES (%s, %s, %s, ARRAY['codes:read'], %s, %s)",
            (ORGANIZATION_ID, API_KEY_ID, PROJECT_ID, now, now + timedelta(days=1)),
        )
        connection.execute(
            "INSERT INTO api_key_digests (digest, organization_id, api_key_id) VALUES (%s, %s, %s)",
            (digest_of_secret(secret), ORGANIZATION_ID, API_KEY_ID),
        )


def wanted_code(organization_id: str = ORGANIZATION_ID, **more: Any) -> str:
    """Return the body of a request to issue one Code, with more members, such as `count`."""
    body = {
        "organization_id": organization_id,
        "project_id": PROJECT_ID,
        "issuer": "Bench",
        "expires_at": "2999-01-01T00:00:00Z",
        "intent": INTENT,
        **more,
    }
    return json.dumps(body)


def organization_id_of(number: int) -> str:
    """Return the id of the `number`-th further organisation."""
    return f"org_{number:022d}"


def seed_organizations(url: Secret, count: int) -> None:
    """Create this many further organisations of the operator, each with the same project id and an unlimited quota."""
    now = datetime.now(UTC)
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        for number in range(count):
            tenant = organization_id_of(number)
            connection.execute(
                "INSERT INTO organizations (id, name, created_at) VALUES (%s, 'Bench', %s)", (tenant, now)
            )
            connection.execute(
                "INSERT INTO projects (organization_id, id, name, created_at) VALUES (%s, %s, 'Bench', %s)",
                (tenant, PROJECT_ID, now),
            )
            connection.execute(
                "INSERT INTO members (organization_id, subject_id, email, role, created_at)"
                " VALUES (%s, 'operator', 'operator@localhost', 'owner', %s)",
                (tenant, now),
            )
            connection.execute(
                "INSERT INTO code_entitlements (organization_id, plan_id) VALUES (%s, 'plan_bench')", (tenant,)
            )


def seed_campaign(url: Secret, key: SigningKey, numbers: range) -> str:
    """Create a campaign with the Codes of these numbers, and return its id."""
    campaign_id = f"cmp_{numbers[0]:022d}"
    with psycopg.connect(url.reveal(), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO campaigns (organization_id, id, project_id, name, created_at) VALUES (%s, %s, %s, %s, %s)",
            (ORGANIZATION_ID, campaign_id, PROJECT_ID, campaign_id, datetime.now(UTC)),
        )
    seed_codes(url, key, numbers, campaign_id=campaign_id)
    settle(url)
    return campaign_id


def facts_of(key: SigningKey, now: datetime, campaign_id: str | None = None) -> Facts:
    """Return the facts that the seeded Codes share."""
    return Facts(
        organization_id=ORGANIZATION_ID,
        project_id=PROJECT_ID,
        campaign_id=campaign_id,
        issuer="Bench",
        issued_at=now,
        expires_at=now + _LIFE,
        intent=canonicalize(INTENT),
        audience_integration_id=None,
        key_id=key.key_id,
    )


def _rows(facts: Facts, numbers: range) -> Iterator[tuple[str, str, bytes]]:
    """Yield token, id and payload of each Code."""
    head = facts.head()
    for number in numbers:
        token, xr_id = token_of(number), xr_id_of(number)
        yield token, xr_id, payload_of(head, xr_id=xr_id, broadcast_token=token)
