"""A change of the master key: every sealed value of every tenant moves to it, or none does."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.api.core_client import Api
from support.api.core_settings import MASTER_KEY, core_settings
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.store.platform.sealed_values import SEALED_COLUMNS
from soundmark.embedded.postgres import RunningCluster
from soundmark.kit.crypto.entropy import SystemEntropy
from soundmark.kit.crypto.resealing import Resealed, ResealRefused
from soundmark.kit.crypto.resealing import reseal as reseal_columns
from soundmark.kit.crypto.sealing import SealBroken, Sealer, parse_master_key
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.responses.problems import DatabaseUnavailable
from soundmark.kit.http.server.serve import CannotStart
from soundmark.kit.postgres.database import Database

SCHEMA = (Path(__file__).parents[3] / "src" / "soundmark" / "core" / "schema.sql").read_text(encoding="utf-8")
NEW_KEY, WRONG_KEY = "A" * 43, "B" * 42 + "A"
OLD, NEW, WRONG = (Sealer(parse_master_key(key), SystemEntropy()) for key in (MASTER_KEY, NEW_KEY, WRONG_KEY))
PASSWORD = "correct horse battery staple"
# The place that each row is sealed to.
ROW_IDS = {
    "signing_keys": "key_id",
    "log_keys": "id",
    "platform_secrets": "name",
    "instance_secrets": "name",
    "invitations": "id",
    "webhook_endpoints": "id",
    "tickets": "id",
    "ticket_replies": "id",
    "abuse_reports": "id",
}


async def reseal(db: Database, *, old: list[Sealer], new: Sealer) -> Resealed:
    return await reseal_columns(db, SEALED_COLUMNS, old=old, new=new)


@pytest.fixture
def rival(spare_database_url: Secret, cluster: RunningCluster) -> Rival:
    """A second connection, which alters rows and holds locks."""
    assert spare_database_url is not None, "the database is empty"
    return Rival(cluster.superuser_url_of("core_spare"))


@pytest.fixture
async def db(spare_database_url: Secret) -> AsyncIterator[Database]:
    """An open database with a pool of its own."""
    opened = Database(spare_database_url, pool_size=2, application_name="tests")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def api(spare_database_url: Secret) -> AsyncIterator[Api]:
    """A Core with the old master key."""
    async with running_core(core_settings(spare_database_url), FakeClock()) as client:
        yield client


@dataclass(frozen=True)
class Vault:
    """The sealed values in the database."""

    api: Api
    rival: Rival

    async def opened(self, sealer: Sealer) -> dict[tuple[str, str, str], bytes]:
        """Return every sealed value by table, column and row.

        Raises: SealBroken.
        """
        values = {}
        for column in SEALED_COLUMNS.columns:
            row_id = ROW_IDS[column.table]
            rows = await self.rival.rows(f"SELECT {row_id}, {column.column} FROM {column.table}")
            for row, sealed in rows:
                if sealed is None:
                    continue
                place = {"table": column.table, "column": column.column, "row": row}
                values[column.table, column.column, row] = sealer.unseal(sealed, **place)
        return values

    async def make_invitation(self, tenant: Tenant, identity: str, sealer: Sealer = OLD) -> None:
        """Create an invitation whose mail is under way."""
        place = {"table": "invitations", "column": "sealed_secret", "row": identity}
        await self.rival.run(
            "INSERT INTO invitations (organization_id, id, email, role, created_at, expires_at, delivery_status,"
            " delivery_due_at, sealed_secret)"
            " VALUES (%s, %s, 'a@example.org', 'member', %s, %s, 'pending', now(), %s)",
            *(tenant.organization_id, identity, datetime(2026, 1, 1, tzinfo=UTC), datetime(2126, 1, 1, tzinfo=UTC)),
            sealer.seal(identity[::-1].encode(), **place),
        )

    async def make_webhook_endpoint(self, tenant: Tenant, identity: str) -> None:
        """Create a webhook endpoint whose secret was just replaced."""
        secrets = {
            column: OLD.seal(column.encode(), table="webhook_endpoints", column=column, row=identity)
            for column in ("sealed_secret", "sealed_earlier_secret")
        }
        await self.rival.run(
            "INSERT INTO webhook_endpoints (organization_id, id, url, enabled, sealed_secret, sealed_earlier_secret,"
            " earlier_secret_until, created_at) VALUES (%s, %s, 'https://example.org', true, %s, %s, now(), now())",
            *(tenant.organization_id, identity, *secrets.values()),
        )


@pytest.fixture
async def vault(api: Api, rival: Rival) -> Vault:
    """Every kind of sealed value, of two tenants and of the platform."""
    vault = Vault(api, rival)
    for identity in ("inv_one", "inv_two"):
        tenant = await make_tenant(api)
        await vault.make_invitation(tenant, identity)
        await vault.make_webhook_endpoint(tenant, f"whe_of_{identity}")
    place = {"table": "tickets", "column": "sealed_message", "row": "tkt_one"}
    await rival.run(
        "INSERT INTO tickets (organization_id, id, subject_id, request_id, subject, status, sealed_message, post_after,"
        " created_at) SELECT id, 'tkt_one', 'ada', 'supreq_1', 'No sound', 'pending', %s, now(), now()"
        " FROM organizations LIMIT 1",
        OLD.seal(b"quiet", **place),
    )
    place = {"table": "ticket_replies", "column": "sealed_message", "row": "rpl_one"}
    await rival.run(
        "INSERT INTO ticket_replies (organization_id, id, ticket_id, subject_id, request_id, sealed_message,"
        " post_after, created_at) SELECT organization_id, 'rpl_one', id, 'ada', 'supreq_1', %s, now(), now()"
        " FROM tickets",
        OLD.seal(b"still quiet", **place),
    )
    sealed = {
        column: OLD.seal(column.encode(), table="abuse_reports", column=column, row="abr_one")
        for column in ("sealed_text", "sealed_contact", "sealed_note")
    }
    await rival.run(
        "INSERT INTO abuse_reports (id, xr_id, category, status, created_at, sealed_text, sealed_contact, sealed_note)"
        " VALUES ('abr_one', 'xr_1', 'spam', 'open', now(), %s, %s, %s)",
        *sealed.values(),
    )
    for name in ("smtp_password", "card_secret_key"):
        assert (await api.call("PUT", f"/v1/platform/settings/secrets/{name}", json={"value": PASSWORD})).status == 200
    place = {"table": "instance_secrets", "column": "sealed", "row": "made_by_the_test"}
    statement = "INSERT INTO instance_secrets VALUES ('made_by_the_test', %s, now())"
    await rival.run(statement, OLD.seal(b"of this instance", **place))
    return vault


def test_every_sealed_column_of_the_schema_is_known() -> None:
    """A new column that is not moved would be lost with the old key."""
    found = set()
    for table, body in re.findall(r"^CREATE TABLE (\w+) \((.*?)^\);", SCHEMA, re.MULTILINE | re.DOTALL):
        found |= {(table, column) for column in re.findall(r"^    (\w*seal\w*) +bytea", body, re.MULTILINE)}
    chained = {
        ("audit_seals", "seal"),
        ("audit_heads", "seal"),
    }  # Created with a sealed key, which no process has opened.
    assert {(column.table, column.column) for column in SEALED_COLUMNS.columns} == found - chained
    assert set(ROW_IDS) == {column.table for column in SEALED_COLUMNS.columns}


async def test_all_sealed_values_of_tenants_and_the_platform_move(vault: Vault, db: Database) -> None:
    before = await vault.opened(OLD)
    assert {table for table, _, _ in before} == set(ROW_IDS)
    done = await reseal(db, old=[OLD], new=NEW)
    assert done == Resealed(moved_count=len(before), already_count=0)
    assert await vault.opened(NEW) == before
    with pytest.raises(SealBroken):
        await vault.opened(OLD)


async def test_repeated_it_changes_nothing(vault: Vault, db: Database) -> None:
    moved = await reseal(db, old=[OLD], new=NEW)
    before = await vault.rival.rows("SELECT name, sealed FROM platform_secrets ORDER BY name")
    assert await reseal(db, old=[OLD], new=NEW) == Resealed(0, moved.moved_count)
    assert await reseal(db, old=[NEW], new=NEW) == Resealed(0, moved.moved_count), "the same key twice"
    assert await vault.rival.rows("SELECT name, sealed FROM platform_secrets ORDER BY name") == before


async def test_values_sealed_by_an_old_process_move_the_next_time(vault: Vault, db: Database) -> None:
    """Between the change and its restart a process keeps using the old key."""
    await reseal(db, old=[OLD], new=NEW)
    await vault.api.call("PUT", "/v1/platform/settings/secrets/support_api_key", json={"value": PASSWORD})
    await vault.make_invitation(await make_tenant(vault.api), "inv_late")
    assert (await reseal(db, old=[OLD], new=NEW)).moved_count == 2
    assert (await vault.opened(NEW))["platform_secrets", "sealed", "support_api_key"] == PASSWORD.encode()


async def test_with_the_wrong_old_key_nothing_changes(vault: Vault, db: Database) -> None:
    before = await vault.opened(OLD)
    with pytest.raises(ResealRefused, match=r"^signing_keys\.sealed_seed of sig_\S+ opens neither under the old key"):
        await reseal(db, old=[WRONG], new=NEW)
    assert await vault.opened(OLD) == before


async def test_one_value_that_does_not_open_keeps_all_others_from_moving(vault: Vault, db: Database) -> None:
    """The last value of the last table: everything before it was moved in the same transaction."""
    await vault.make_invitation(await make_tenant(vault.api), "inv_zzz", WRONG)
    await vault.rival.run("UPDATE invitations SET organization_id = organization_id WHERE id = 'inv_zzz'")
    with pytest.raises(ResealRefused, match=r"^invitations\.sealed_secret of inv_zzz ") as refused:
        await reseal(db, old=[OLD], new=NEW)
    assert PASSWORD not in str(refused.value)
    await vault.rival.run("DELETE FROM invitations WHERE id = 'inv_zzz'")
    assert len(await vault.opened(OLD)) >= 6


async def test_of_several_old_keys_each_opens_its_own(vault: Vault, db: Database) -> None:
    await vault.make_invitation(await make_tenant(vault.api), "inv_third", WRONG)
    await reseal(db, old=[OLD, WRONG], new=NEW)
    assert (await vault.opened(NEW))["invitations", "sealed_secret", "inv_third"] == b"driht_vni"


async def test_dying_in_the_middle_changes_nothing(vault: Vault, db: Database) -> None:
    """PostgreSQL loses our connection while the last table is written."""
    before = await vault.opened(OLD)
    await vault.rival.run(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
        " AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
    )
    await vault.rival.run("CREATE TRIGGER dying BEFORE UPDATE ON invitations FOR EACH ROW EXECUTE FUNCTION die()")
    try:
        with pytest.raises(DatabaseUnavailable):
            await reseal(db, old=[OLD], new=NEW)
    finally:
        await vault.rival.run("DROP FUNCTION die CASCADE")
    assert await vault.opened(OLD) == before
    assert (await reseal(db, old=[OLD], new=NEW)).moved_count == len(before)


async def test_a_change_under_way_is_awaited_and_moved(vault: Vault, db: Database) -> None:
    """Nothing is missed: a row that another transaction is writing when we begin is in our list."""
    old, new = OLD, NEW
    count = len(await vault.opened(OLD))
    for table in sorted(ROW_IDS):
        column = next(column.column for column in SEALED_COLUMNS.columns if column.table == table)
        begun = f"UPDATE {table} SET {column} = {column} WHERE {column} IS NOT NULL"
        async with vault.rival.committing(begun):
            moving = await vault.rival.while_waiting(reseal(db, old=[old], new=new))
        assert (await moving).moved_count == count, table
        old, new = new, old


async def test_a_row_locked_before_it_is_written_causes_no_deadlock(vault: Vault, db: Database) -> None:
    """Accepting an invitation locks its row and then writes it; in between we request the table's lock."""
    async with await psycopg.AsyncConnection.connect(vault.rival._url.reveal()) as accepting:
        await accepting.execute("SELECT FROM invitations WHERE id = 'inv_one' FOR NO KEY UPDATE")
        moving = await vault.rival.while_waiting(reseal(db, old=[OLD], new=NEW))
        await accepting.execute("UPDATE invitations SET delivery_attempts = 1 WHERE id = 'inv_one'")
        await accepting.commit()
    assert (await moving).moved_count == len(await vault.opened(NEW))


async def test_a_tenant_still_sees_no_other_tenant(vault: Vault, db: Database) -> None:
    """The setting that opens every tenant's invitations belongs to the operator and not to a tenant."""
    assert await vault.rival.rows("SELECT count(*) FROM invitations") == [(2,)]
    for tenant, count in ((None, 0), ("org_nobody", 0), ("", 0), ("*", 2)):
        async with db.transaction(tenant=tenant) as tx:
            assert await tx.value("SELECT count(*) FROM invitations") == count
            assert await tx.run("UPDATE invitations SET role = role") == count
            assert await tx.run("DELETE FROM invitations") == 0, "not even the operator"


async def test_a_core_with_the_old_key_goes_on_and_one_with_the_new_key_takes_over(
    vault: Vault, db: Database, spare_database_url: Secret
) -> None:
    """Receivers notice nothing, neither before the restart nor after it."""
    tenant = await make_tenant(vault.api)
    code = await tenant.make_code()
    await reseal(db, old=[OLD], new=NEW)
    later = await tenant.make_code()
    with pytest.raises(CannotStart, match="master key"):
        async with running_core(core_settings(spare_database_url)):
            pass
    async with running_core(core_settings(spare_database_url, master_key=NEW_KEY)) as fresh:
        for core in (vault.api, fresh):
            for one in (code, later):
                answer = await core.resolve(one["broadcast_token"])
                assert (answer.status, answer.json["xr_id"]) == (200, one["xr_id"])
        issued: dict[str, Any] = await Tenant(fresh, tenant.organization_id, tenant.project_id).make_code()
        assert issued["signed_code"]["key_id"] == code["signed_code"]["key_id"]
        assert (await vault.api.resolve(issued["broadcast_token"])).status == 200


async def test_a_core_with_the_old_key_still_invites(vault: Vault, db: Database) -> None:
    """It need not open the mail server's password to know that there is a mail server."""
    tenant = await make_tenant(vault.api)
    for name, value in (("smtp_host", "mail.example.org"), ("smtp_from_email", "codes@example.org")):
        path = f"/v1/platform/settings/configuration/{name}"
        assert (await vault.api.call("PUT", path, json={"value": value})).status == 200
    await reseal(db, old=[OLD], new=NEW)
    assert (await tenant.make_invitation())["delivery_status"] == "pending"
    assert (await reseal(db, old=[OLD], new=NEW)).moved_count == 1
