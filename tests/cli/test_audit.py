"""`soundmark audit verify` on a real database."""

import asyncio
import json
from pathlib import Path

import psycopg
import pytest
from support.api.core_settings import MASTER_KEY, core_settings
from support.processes.running_apps import running_core
from support.tenancy.tenant import make_tenant

from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.secret import Secret

from .conftest import run

Settings = dict[str, str]


@pytest.fixture
def settings(spare_database_url: Secret) -> Settings:
    """The settings of the commands under test."""
    return {"CORE_DATABASE_URL": spare_database_url.reveal(), "MASTER_KEY": MASTER_KEY}


@pytest.fixture
async def organization_id(spare_database_url: Secret) -> str:
    """An organisation with three sealed entries."""
    async with running_core(core_settings(spare_database_url)) as api:
        tenant = await make_tenant(api)
        await tenant.make_code()
        async with asyncio.timeout(60):
            while (await api.get("/v1/audit-log/verification", params=tenant.query)).json["unsealed"]:
                pass
    return tenant.organization_id


def alter(cluster: RunningCluster, statement: str) -> None:
    with psycopg.connect(cluster.superuser_url_of("core_spare").reveal(), autocommit=True) as connection:
        connection.execute(statement.encode())


def test_an_unaltered_log_is_verified(organization_id: str, settings: Settings) -> None:
    done = run("audit", "verify", organization_id, settings=settings)
    assert (done.status, done.err) == (0, "")
    assert done.out == f"{organization_id}: verified, 3 entries, 0 of them not sealed yet\n"


def test_the_first_broken_entry_is_named(
    organization_id: str, settings: Settings, cluster: RunningCluster, spare_database_url: Secret
) -> None:
    alter(cluster, "UPDATE audit_entries SET actor_id = 'somebody else' WHERE action <> 'organization.created'")
    with psycopg.connect(cluster.superuser_url_of("core_spare").reveal()) as connection:
        rows = connection.execute(
            "SELECT entry_id FROM audit_seals JOIN audit_entries ON id = entry_id"
            " WHERE action <> 'organization.created' ORDER BY position"
        ).fetchall()
    done = run("audit", "verify", organization_id, settings=settings)
    assert done.refusal == f"the audit log of {organization_id} was altered; first broken entry: {rows[0][0]}"
    assert done.out == ""
    assert MASTER_KEY not in done.err
    assert spare_database_url.reveal() not in done.err


def test_a_waiting_entry_is_counted(organization_id: str, settings: Settings, cluster: RunningCluster) -> None:
    alter(
        cluster,
        "WITH e AS (INSERT INTO audit_entries SELECT organization_id, 'aud_new', project_id, action, actor_type,"
        " actor_id, outcome, metadata, created_at, finalised_at FROM audit_entries LIMIT 1"
        " RETURNING organization_id, id) INSERT INTO audit_unsealed SELECT organization_id, id, 'final', now() FROM e",
    )
    done = run("audit", "verify", organization_id, settings=settings)
    assert (done.status, done.out) == (
        0,
        f"{organization_id}: verified, 4 entries, 1 of them not sealed yet\n",
    )


@pytest.mark.usefixtures("organization_id")
@pytest.mark.parametrize("unknown", ["org_" + "A" * 22, "org_", "x", "", "org_\n", "org_ä"])
def test_an_unknown_organisation_is_refused(settings: Settings, unknown: str) -> None:
    assert run("audit", "verify", unknown, settings=settings).refusal == f"there is no organisation {unknown!a}"


def test_another_master_key_is_refused(organization_id: str, settings: Settings) -> None:
    done = run("audit", "verify", organization_id, settings={**settings, "MASTER_KEY": "A" * 43})
    assert "this master key does not open the key of the audit chain" in done.refusal


def test_a_chain_without_its_key_is_refused(organization_id: str, settings: Settings, cluster: RunningCluster) -> None:
    """Core would create another one at its start, under which nothing verifies."""
    alter(cluster, "DELETE FROM instance_secrets")
    assert "the audit chain has no key yet" in run("audit", "verify", organization_id, settings=settings).refusal


def test_a_missing_database_is_reported(settings: Settings) -> None:
    away = {**settings, "CORE_DATABASE_URL": "postgresql://u:p@127.0.0.1:1/d"}
    assert run("audit", "verify", "org_x", settings=away).refusal == "Core's database does not answer"


def test_a_data_dir_replaces_the_settings(organization_id: str, tmp_path: Path, spare_database_url: Secret) -> None:
    up = {"pid": 1, "base_url": "http://127.0.0.1:1", "core_database_url": spare_database_url.reveal()}
    (tmp_path / "up.json").write_text(json.dumps(up))
    (tmp_path / "master.key").write_text(MASTER_KEY)
    done = run("audit", "verify", organization_id, "--data-dir", str(tmp_path))
    assert done.status == 0, done


def test_an_organisation_must_be_named(settings: Settings) -> None:
    assert run("audit", "verify", settings=settings).status == 2
