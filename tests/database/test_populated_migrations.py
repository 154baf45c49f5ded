"""A database of any earlier release keeps its rows when it is migrated, and the release of today reads them.

`rows/<component>/<revision>.sql` holds rows as the release with that revision wrote them, in the tables and columns
that it added.
"""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
import rfc8785
from soundmark_sdk import read_key_set, verify_answer
from support.api.core_settings import MASTER_KEY, core_settings
from support.audience.client import audience_settings, running_audience
from support.processes.running_apps import running_core

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.sealing import Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.crypto.signing import SigningKey
from soundmark.kit.postgres import migrations
from soundmark.kit.postgres.migrations import migrate
from soundmark.kit.text import base64url
from soundmark.kit.text.timestamps import format_timestamp

ROWS: Final = Path(__file__).with_name("rows")
REVISIONS: Final = sorted((path.parent.name, path.stem) for path in ROWS.glob("*/*.sql"))
ORGANIZATION, PROJECT = "org_b2xkLXJhZGlvLWV4YW1wbA", "prj_bW9ybmluZy1zaG93LWV4YW"
ACTIVE, REVOKED = "brd_YWN0aXZlLWNvZGUx", "brd_cmV2b2tlZC1jb2Rl"
API_KEY: Final = "xak_" + "k" * 43
KEY: Final = SigningKey.from_seed("sig_YWN0aXZlLWtleS1leGFtcG", bytes(range(5, 37)))


def make_payload(xr_id: str, token: str, now: datetime) -> bytes:
    """Return the signed bytes of a Code, put together without the server's own code."""
    code = {
        "version": 1,
        "xr_id": xr_id,
        "organization_id": ORGANIZATION,
        "project_id": PROJECT,
        "campaign_id": None,
        "issuer": "Radio Nordlicht",
        "intent": {"type": "link", "action": "open", "resource": {"url": "https://example.org"}},
        "issued_at": format_timestamp(now),
        "expires_at": format_timestamp(now + timedelta(days=1)),
        "key_id": KEY.key_id,
        "policy": {"audience_measurement": False, "audience_integration_id": None},
        "token_digest": base64url.encode(hashlib.sha256(token.encode()).digest()),
    }
    return rfc8785.dumps(code)


def make_values(now: datetime) -> dict[str, Any]:
    """Return the values that the rows of every revision name."""
    sealer = Sealer(parse_master_key(MASTER_KEY), SystemEntropy())
    active = make_payload("xr_YWN0aXZlLWNvZGUtZXhhbX", ACTIVE, now)
    revoked = make_payload("xr_cmV2b2tlZC1jb2RlLWV4YX", REVOKED, now)
    of_key = {"table": "signing_keys", "row": KEY.key_id}
    return {
        "now": now,
        "tomorrow": now + timedelta(days=1),
        "key_id": KEY.key_id,
        "public_key": KEY.public_key,
        "sealed_seed": sealer.seal(bytes(range(5, 37)), column="sealed_seed", **of_key),
        "sealed_public_key": sealer.seal(KEY.public_key, column="sealed_public_key", **of_key),
        "sealed_password": sealer.seal(b"swordfish", table="platform_secrets", column="sealed", row="smtp_password"),
        "active_payload": active,
        "active_signature": KEY.sign(active),
        "revoked_payload": revoked,
        "revoked_signature": KEY.sign(revoked),
        "api_key_digest": hashlib.sha256(API_KEY.encode()).digest(),
    }


def migrate_to(url: Secret, component: str, revision: str, patch: pytest.MonkeyPatch) -> None:
    """Bring the database to a revision that may be older than the newest."""
    upgrade = migrations.command.upgrade
    with patch.context() as context:
        context.setattr(migrations.command, "upgrade", lambda config, _: upgrade(config, revision))
        context.setattr(migrations, "newest_revision", lambda _: revision)
        migrate(url, f"soundmark.{component}")


def populate(url: Secret, component: str, revision: str) -> None:
    """Write the rows of this revision and of every one before it."""
    values = make_values(datetime.now(UTC).replace(microsecond=0))
    with psycopg.connect(url.reveal(), cursor_factory=psycopg.ClientCursor) as connection:
        for path in sorted((ROWS / component).glob("*.sql")):
            if path.stem <= revision:
                connection.execute(path.read_text("utf-8").encode(), values)


def read_rows(url: Secret) -> dict[str, list[dict[str, Any]]]:
    """Return every row of every table, by the table's name."""
    with psycopg.connect(url.reveal()) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return {
            name: [row for (row,) in connection.execute(f'SELECT to_jsonb(t) FROM "{name}" t'.encode()).fetchall()]
            for (name,) in names
            if name != "alembic_version"
        }


def is_kept(row: dict[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Return whether one of the rows has the same values in the columns of `row`."""
    return any(row == {name: each[name] for name in row.keys() & each.keys()} for each in rows)


@pytest.fixture
def make_old(cluster: RunningCluster, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make a populated database of a revision: the URL of its owner, and that of a superuser."""

    def make(component: str, revision: str) -> tuple[Secret, Secret]:
        name = f"old_{component}"
        with psycopg.connect(cluster.superuser_url.reveal(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        url = cluster.create_role_and_database(name)
        migrate_to(url, component, revision, monkeypatch)
        populate(cluster.superuser_url_of(name), component, revision)
        return url, cluster.superuser_url_of(name)

    return make


@pytest.mark.parametrize("component", ["core", "audience"])
def test_every_revision_has_its_rows(component: str) -> None:
    versions = Path(migrations.__file__).parents[2] / component / "migrations" / "versions"
    revisions = [path.name[:4] for path in sorted(versions.glob("0*.py"))]
    assert revisions == [revision for each, revision in REVISIONS if each == component]


@pytest.mark.parametrize(("component", "revision"), REVISIONS)
def test_a_migration_keeps_every_row(make_old: Any, component: str, revision: str) -> None:
    url, superuser_url = make_old(component, revision)
    before = read_rows(superuser_url)
    migrate(url, f"soundmark.{component}")
    after = read_rows(superuser_url)
    lost = [(name, row) for name, rows in before.items() for row in rows if not is_kept(row, after.get(name, []))]
    assert lost == []
    added = {name: len(after[name]) - len(rows) for name, rows in before.items() if len(after[name]) != len(rows)}
    has_seeded_plan = component == "core" and "0003" <= revision < "0011"
    assert added == ({"plans": 1} if has_seeded_plan else {})


@pytest.mark.parametrize("revision", [revision for component, revision in REVISIONS if component == "core"])
async def test_core_reads_what_an_earlier_release_wrote(make_old: Any, revision: str) -> None:
    url, _ = make_old("core", revision)
    migrate(url, "soundmark.core")
    query = {"organization_id": ORGANIZATION}
    async with running_core(core_settings(url)) as api:
        assert [each["name"] for each in (await api.get("/v1/organizations")).json["data"]] == ["Radio Nordlicht"]
        assert [each["name"] for each in (await api.get("/v1/projects", params=query)).json["data"]] == ["Morning show"]
        codes = (await api.get("/v1/codes", params=query)).json["data"]
        assert sorted(code["status"] for code in codes) == ["active", "revoked"]
        answer = await api.resolve(ACTIVE)
        keys = read_key_set((await api.get("/v1/keys")).body)
        assert verify_answer(answer.body, ACTIVE, keys, api.clock.now()).xr_id == "xr_YWN0aXZlLWNvZGUtZXhhbX"
        assert (await api.resolve(REVOKED)).code == "code_unavailable"
        quota = 5000 if revision >= "0003" else 100
        usage = (await api.get("/v1/usage", params=query)).json
        assert usage["codes"] == {"issued": 2, "monthly_quota": quota, "remaining": quota - 2}
        if revision >= "0002":
            assert (await api.other(token=API_KEY).get("/v1/codes", params=query)).json["data"] == codes
            entries = (await api.get("/v1/audit-log", params=query)).json["data"]
            assert "organization.created" in {entry["action"] for entry in entries}
            assert (await api.get("/v1/audit-log/verification", params=query)).json["verified"]
            invited = (await api.get("/v1/member-invitations", params=query)).json["data"]
            assert [(each["email"], each["status"]) for each in invited] == [("eve@example.org", "pending")]
        if revision >= "0003":
            campaigns = (await api.get("/v1/campaigns", params={**query, "project_id": PROJECT})).json["data"]
            assert [each["name"] for each in campaigns] == ["Tonight"]


async def test_audience_reads_what_an_earlier_release_wrote(make_old: Any) -> None:
    url, _ = make_old("audience", "0002")
    migrate(url, "soundmark.audience")
    async with running_audience(audience_settings(url)) as audience:
        query = {"organization_id": ORGANIZATION, "project_id": PROJECT}
        listed = await audience.call("GET", "/v1/integrations", params={**query, "limit": "10"})
        assert [each["id"] for each in listed.json["data"]] == ["int_aW50ZWdyYXRpb24tZXhhbX"]
        report = await audience.call("GET", "/v1/reports/int_aW50ZWdyYXRpb24tZXhhbX", params=query)
        assert (report.status, report.json["events"]) == (200, 1)
        legacy = await audience.call("GET", "/v1/legacy-report", params=query)
        assert legacy.status == 200


def test_of_several_pending_deliveries_of_one_event_that_with_the_fewest_attempts_is_kept(make_old: Any) -> None:
    """Earlier releases made them in replays. What is delivered or failed stays, and so does what is for another."""
    url, superuser_url = make_old("core", "0014")
    row = "(%s, %s, %s, 'evn_1', 'code.issued', %s, %s, now() + %s * interval '1 s', now())"
    kept = [
        ("org_1", "whd_fresh", "whe_1", "pending", 0, 1),
        ("org_1", "whd_other", "whe_2", "pending", 3, 1),
        ("org_1", "whd_failed", "whe_1", "failed", 8, None),
        ("org_2", "whd_soon", "whe_1", "pending", 1, 1),
    ]
    dropped = [
        ("org_1", "whd_again", "whe_1", "pending", 0, 2),
        ("org_1", "whd_first", "whe_1", "pending", 1, 0),
        ("org_2", "whd_later", "whe_1", "pending", 1, 2),
    ]
    with psycopg.connect(superuser_url.reveal()) as connection:
        for values in [*dropped, *kept]:
            connection.execute(
                "INSERT INTO webhook_deliveries (organization_id, id, endpoint_id, event_id, event_type, status,"
                f" attempts, next_attempt_at, created_at) VALUES {row}".encode(),
                values,
            )
    migrate(url, "soundmark.core")
    with psycopg.connect(superuser_url.reveal()) as connection:
        rows = connection.execute("SELECT id FROM webhook_deliveries WHERE event_id = 'evn_1' ORDER BY id").fetchall()
        assert [identity for (identity,) in rows] == sorted(identity for _, identity, *_ in kept)
